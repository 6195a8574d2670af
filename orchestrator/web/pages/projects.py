"""Projects: a new one, and the definitions that its repository holds."""

import contextlib
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.fetched_names import names_as_fetched
from orchestrator.benchmarks.from_repository import (
    definition_files,
    import_definition,
    slug_of,
)
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.selectors import project_for
from orchestrator.core.errors import InvalidRequestError
from orchestrator.web.access import for_member
from orchestrator.web.definition_forms import ImportForm, ProjectForm
from orchestrator.web.forms import FORM_ERRORS


@for_member
def new_project(request: HttpRequest, member: Member) -> HttpResponse:
    form = ProjectForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            project = create_project(member=member, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error, default="repository_url")
        else:
            return redirect("project", project.slug)
    return render(request, "benchmarks/new_project.html", {"form": form}, status=form.status)


@for_member
def import_benchmark(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """The definitions in the project's repository, each with a button that imports it."""
    project = project_for(member, slug)
    if "look" in request.POST:
        return _look(member, project, request.POST["look"].strip()[:200])
    form = ImportForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            definition = import_definition(member=member, project=project, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error, default="path")
        else:
            return redirect("benchmark", project.slug, definition.benchmark.slug)
    ref = request.GET.get("ref", "").strip()
    context = {"project": project, "form": form, "ref": ref, **_found(project, ref)}
    return render(request, "benchmarks/import.html", context, status=form.status)


def _look(member: Member, project: Project, ref: str) -> HttpResponse:
    """Has a name that is not known fetched; then the page shows what is there, or why nothing is.

    The page itself requests no fetch: crawlers and previews of links open pages as well.
    """
    member.require(Role.MEMBER, to="look for a name in the repository")
    with names_as_fetched(), contextlib.suppress(InvalidRequestError):
        definition_files(project=project, ref=ref)
    return redirect(f"{reverse('project-import', args=[project.slug])}?{urlencode({'ref': ref})}")


def _found(project: Project, ref: str) -> dict[str, Any]:
    """The commit that was looked at and its files, or why there is none."""
    try:
        commit, paths = definition_files(project=project, ref=ref)
    except InvalidRequestError as error:
        return {"problem": str(error)}
    return {"commit": commit, "files": _rows(project, commit, paths)}


def _rows(project: Project, commit: Commit, paths: list[str]) -> list[dict[str, Any]]:
    kept = {each.repository_path: each for each in project.benchmarks.exclude(repository_path="")}
    slugs = set(project.benchmarks.values_list("slug", flat=True))
    return [
        {
            "path": path,
            "slug": kept[path].slug if path in kept else slug_of(project, path),
            "benchmark": kept.get(path),
            "takes_over": path not in kept and slug_of(project, path) in slugs,
        }
        for path in paths
    ]
