"""Benchmarks: the list, one with its definition and cases, a new one, changes between versions."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import load_suite
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Definition
from orchestrator.benchmarks.review import review, review_spec
from orchestrator.benchmarks.selectors import (
    load_benchmark,
    load_project,
    load_projects,
    load_versions,
    read_spec,
)
from orchestrator.benchmarks.services import save_definition, store_in_pitwall
from orchestrator.benchmarks.versions import compare_cases, compute_diff
from orchestrator.core.errors import NotFoundError
from orchestrator.web.access import for_member
from orchestrator.web.benchmarks.forms import BenchmarkForm, DefinitionForm, build_example
from orchestrator.web.benchmarks.results import build_results_context
from orchestrator.web.cases import list_cases
from orchestrator.web.forms import FORM_ERRORS


@for_member
def benchmarks(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "benchmarks/list.html", {"projects": load_projects(member)})


@for_member
def benchmark(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Show one version of a benchmark; a POST saves a new version, or only checks it."""
    record = load_benchmark(member, slug, project)
    versions = list(load_versions(record))
    definition = _find_version(versions, request.GET.get("version"))
    form = DefinitionForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"source": definition.source},
    )
    if form.is_valid() and "check" not in request.POST:
        try:
            _save(member, record, form)
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", project, slug)
    spec = read_spec(definition)
    context = {
        "benchmark": record,
        "definition": definition,
        "versions": versions,
        "spec": spec,
        "review": _build_review(form) if form.is_bound else review_spec(spec),
        "cases": list_cases(spec, expand(spec)),
        "form": form,
        **build_results_context(member, record, versions[0]),
    }
    return render(request, "benchmarks/detail.html", context, status=form.status)


@for_member
def new_benchmark(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form with an example, or with a suite of the catalogue (`?suite=`)."""
    form = BenchmarkForm(
        member,
        request.POST if request.method == "POST" else None,
        initial=_build_initial(request),
    )
    if form.is_valid() and "check" not in request.POST:
        data = form.cleaned_data
        try:
            project = load_project(member, data["project"])
            source = _normalise_newlines(data["source"])
            save_definition(member=member, project=project, slug=data["slug"], source=source)
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("benchmark", data["project"], data["slug"])
    context = {"form": form, "review": _build_review(form), "suite": request.GET.get("suite", "")}
    return render(request, "benchmarks/new.html", context, status=form.status)


@for_member
@require_POST
def check(request: HttpRequest, member: Member) -> HttpResponse:
    """Check the text of a definition while it is being written."""
    result = review(_normalise_newlines(request.POST.get("source", "")))
    return render(request, "components/_review.html", {"review": result})


@for_member
def diff(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Show the changes between two versions (`?from=1&to=3`; default: the latest change)."""
    record = load_benchmark(member, slug, project)
    versions = list(load_versions(record))
    newest = _find_version(versions, None)
    after = _find_version(versions, request.GET.get("to") or str(newest.version))
    before = _find_version(versions, request.GET.get("from") or str(max(1, after.version - 1)))
    context = {
        "benchmark": record,
        "versions": versions,
        "before": before,
        "after": after,
        "choices": [("from", before), ("to", after)],
        "lines": compute_diff(before.source, after.source),
        "changes": compare_cases(read_spec(before), read_spec(after)),
    }
    return render(request, "benchmarks/diff.html", context)


@for_member
@require_POST
def store_repository_definition(
    request: HttpRequest, member: Member, project: str, slug: str
) -> HttpResponse:
    """Detach the definition from the repository: from now on it is changed here."""
    store_in_pitwall(member=member, benchmark=load_benchmark(member, slug, project))
    return redirect("benchmark", project, slug)


def _save(member: Member, record: Benchmark, form: DefinitionForm) -> Definition:
    source = _normalise_newlines(form.cleaned_data["source"])
    return save_definition(member=member, project=record.project, slug=record.slug, source=source)


def _build_initial(request: HttpRequest) -> dict[str, Any]:
    suite = request.GET.get("suite", "")
    given = {"project": request.GET.get("project", ""), "slug": suite}
    return {**given, "source": load_suite(suite).source if suite else build_example()}


def _build_review(form: DefinitionForm) -> Any:
    return review(_normalise_newlines(form["source"].value() or ""))


def _find_version(versions: Sequence[Definition], wanted: str | None) -> Definition:
    if not versions:
        raise NotFoundError("this benchmark has no definition yet")
    if wanted is None:
        return versions[0]
    chosen = (each for each in versions if str(each.version) == wanted)
    definition = next(chosen, None)
    if definition is None:
        raise NotFoundError(f"this benchmark has no version {wanted}")
    return definition


def _normalise_newlines(source: str) -> str:
    """Browsers send CRLF; without edits the definition must stay the same text."""
    return source.replace("\r\n", "\n")
