"""Benchmarks: the list, one with its definition and cases, a new one."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import (
    benchmark_for,
    project_for,
    projects_of,
    spec_of,
    versions_of,
)
from orchestrator.benchmarks.services import save_definition
from orchestrator.core.errors import NotFoundError
from orchestrator.web.access import for_member
from orchestrator.web.examples import DEFINITION
from orchestrator.web.forms import FORM_ERRORS, BenchmarkForm, DefinitionForm


@for_member
def benchmarks(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "benchmarks/list.html", {"projects": projects_of(member)})


@for_member
def benchmark(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """A benchmark in one of its versions; a POST saves a new one."""
    found = benchmark_for(member, slug, project)
    versions = list(versions_of(found))
    definition = _version(versions, request.GET.get("version"))
    form = DefinitionForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"source": definition.source},
    )
    if form.is_valid():
        source = form.cleaned_data["source"]
        try:
            save_definition(member=member, project=found.project, slug=slug, source=_unix(source))
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", project, slug)
    context = {
        "benchmark": found,
        "definition": definition,
        "versions": versions,
        "spec": spec_of(definition),
        "cases": expand(spec_of(definition)),
        "form": form,
    }
    return render(request, "benchmarks/detail.html", context, status=form.status)


@for_member
def new_benchmark(request: HttpRequest, member: Member) -> HttpResponse:
    initial = {"source": DEFINITION, "project": request.GET.get("project", "")}
    form = BenchmarkForm(
        member, request.POST if request.method == "POST" else None, initial=initial
    )
    if form.is_valid():
        data = form.cleaned_data
        try:
            project = project_for(member, data["project"])
            save_definition(
                member=member, project=project, slug=data["slug"], source=_unix(data["source"])
            )
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", data["project"], data["slug"])
    return render(request, "benchmarks/new.html", {"form": form}, status=form.status)


def _version(versions: Sequence[Definition], wanted: str | None) -> Definition:
    if not versions:
        raise NotFoundError("this benchmark has no definition yet")
    if wanted is None:
        return versions[0]
    chosen = (each for each in versions if str(each.version) == wanted)
    definition = next(chosen, None)
    if definition is None:
        raise NotFoundError(f"this benchmark has no version {wanted}")
    return definition


def _unix(source: str) -> str:
    """Browsers send CRLF; a definition that was not edited must stay the same text."""
    return source.replace("\r\n", "\n")
