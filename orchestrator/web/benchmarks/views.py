"""Benchmarks: the list, one with its definition and cases, a new one, changes between versions."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import suite_named
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Definition
from orchestrator.benchmarks.review import review, review_of
from orchestrator.benchmarks.selectors import (
    benchmark_for,
    project_for,
    projects_of,
    spec_of,
    versions_of,
)
from orchestrator.benchmarks.services import keep_in_pitwall, save_definition
from orchestrator.benchmarks.versions import case_changes, diff_lines
from orchestrator.core.errors import NotFoundError
from orchestrator.web.access import for_member
from orchestrator.web.benchmarks.forms import BenchmarkForm, DefinitionForm, example
from orchestrator.web.cases import list_cases
from orchestrator.web.forms import FORM_ERRORS


@for_member
def benchmarks(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "benchmarks/list.html", {"projects": projects_of(member)})


@for_member
def benchmark(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Show one version of a benchmark; a POST saves a new version, or only checks it."""
    found = benchmark_for(member, slug, project)
    versions = list(versions_of(found))
    definition = _version(versions, request.GET.get("version"))
    form = DefinitionForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"source": definition.source},
    )
    if form.is_valid() and "check" not in request.POST:
        try:
            _save(member, found, form)
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", project, slug)
    spec = spec_of(definition)
    context = {
        "benchmark": found,
        "definition": definition,
        "versions": versions,
        "spec": spec,
        "review": _review_of(form) if form.is_bound else review_of(spec),
        "cases": list_cases(spec, expand(spec)),
        "form": form,
    }
    return render(request, "benchmarks/detail.html", context, status=form.status)


@for_member
def new_benchmark(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form with an example, or with a suite of the catalogue (`?suite=`)."""
    form = BenchmarkForm(
        member,
        request.POST if request.method == "POST" else None,
        initial=_initial(request),
    )
    if form.is_valid() and "check" not in request.POST:
        data = form.cleaned_data
        try:
            project = project_for(member, data["project"])
            source = _unix(data["source"])
            save_definition(member=member, project=project, slug=data["slug"], source=source)
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", data["project"], data["slug"])
    context = {"form": form, "review": _review_of(form), "suite": request.GET.get("suite", "")}
    return render(request, "benchmarks/new.html", context, status=form.status)


@for_member
@require_POST
def check(request: HttpRequest, member: Member) -> HttpResponse:
    """Check the text of a definition while it is being written."""
    found = review(_unix(request.POST.get("source", "")))
    return render(request, "components/_review.html", {"review": found})


@for_member
def diff(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Show the changes between two versions (`?from=1&to=3`; default: the latest change)."""
    found = benchmark_for(member, slug, project)
    versions = list(versions_of(found))
    newest = _version(versions, None)
    after = _version(versions, request.GET.get("to") or str(newest.version))
    before = _version(versions, request.GET.get("from") or str(max(1, after.version - 1)))
    context = {
        "benchmark": found,
        "versions": versions,
        "before": before,
        "after": after,
        "choices": [("from", before), ("to", after)],
        "lines": diff_lines(before.source, after.source),
        "changes": case_changes(spec_of(before), spec_of(after)),
    }
    return render(request, "benchmarks/diff.html", context)


@for_member
@require_POST
def keep(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Detach the definition from the repository: from now on it is changed here."""
    keep_in_pitwall(member=member, benchmark=benchmark_for(member, slug, project))
    return redirect("benchmark", project, slug)


def _save(member: Member, found: Benchmark, form: DefinitionForm) -> Definition:
    source = _unix(form.cleaned_data["source"])
    return save_definition(member=member, project=found.project, slug=found.slug, source=source)


def _initial(request: HttpRequest) -> dict[str, Any]:
    suite = request.GET.get("suite", "")
    given = {"project": request.GET.get("project", ""), "slug": suite}
    return {**given, "source": suite_named(suite).source if suite else example()}


def _review_of(form: DefinitionForm) -> Any:
    return review(_unix(form["source"].value() or ""))


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
    """Browsers send CRLF; without edits the definition must stay the same text."""
    return source.replace("\r\n", "\n")
