"""Benchmarks: the list, one with its definition and cases, a new one, changes between versions."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import load_suite
from orchestrator.benchmarks.examples import load_example, load_examples
from orchestrator.benchmarks.hidden_cases import load_former_cases, set_case_hidden
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Definition, Project
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
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.retention.abandoned_drafts import DAYS_KEPT
from orchestrator.retention.deletions import (
    DAYS_TO_RESTORE,
    delete_benchmark,
    list_benchmark_dependents,
)
from orchestrator.runs.tries import try_definition
from orchestrator.web.access import for_member
from orchestrator.web.benchmarks.benchmark_results import build_results_context
from orchestrator.web.benchmarks.forms import (
    BenchmarkForm,
    DefinitionForm,
    TrialForm,
    build_default_text,
    build_schema_line,
)
from orchestrator.web.benchmarks.wizard import Wizard, inspect_repository
from orchestrator.web.cases import list_cases
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first

#: Former cases that the page shows; the API has all.
MOST_FORMER_CASES = 100


@for_member
def benchmarks(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "benchmarks/list.html", {"projects": load_projects(member)})


@for_member
def benchmark(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Show one version of a benchmark; a POST saves a new version, or only checks it."""
    record = load_benchmark(member, slug, project)
    versions = list(load_versions(record))
    if not versions and request.method == "GET":
        return render(request, "benchmarks/imported.html", {"benchmark": record})
    definition = _find_version(versions, request.GET.get("version"))
    form = (TrialForm if record.is_draft else DefinitionForm)(
        member,
        request.POST if request.method == "POST" else None,
        initial={"source": definition.source},
    )
    if form.is_valid() and "check" not in request.POST:
        done = form.create(lambda: _save_or_try(request, member, record, form), default="source")
        if done is not None:
            return done
    spec = read_spec(definition)
    context = {
        "benchmark": record,
        "definition": definition,
        "versions": versions,
        "spec": spec,
        "review": _build_review(form) if form.is_bound else review_spec(spec),
        "cases": list_cases(spec, expand(spec)),
        "former_cases": load_former_cases(record)[:MOST_FORMER_CASES],
        "form": form,
        "draft_days": DAYS_KEPT,
        **build_results_context(member, record, versions[0]),
    }
    return render(request, "benchmarks/detail.html", context, status=form.status)


@for_member
def new_benchmark(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form with a short text, an example (`?example=`), a suite of the catalogue
    (`?suite=`), or a proposal.

    `?inspect=` is the project whose repository is inspected for a proposal.
    """
    sent = request.method == "POST"
    wizard = Wizard() if sent else inspect_repository(member, request.GET.get("inspect", ""))
    initial = _build_initial(request) | wizard.initial
    form = BenchmarkForm(member, request.POST if sent else None, initial=initial)
    if form.is_valid() and "check" not in request.POST:
        done = form.create(lambda: _create_or_try(request, member, form), default="source")
        if done is not None:
            return done
    context = {
        "form": form,
        "review": _build_review(form),
        "suite": request.GET.get("suite", ""),
        "examples": load_examples(),
        "example": request.GET.get("example", ""),
        "wizard": wizard,
    }
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


@for_member
@require_POST
def case_visibility(
    request: HttpRequest, member: Member, project: str, slug: str, case: str
) -> HttpResponse:
    """Hide a former case, or show it again, according to `hidden`."""
    record = load_benchmark(member, slug, project)
    hidden = request.POST.get("hidden") == "true"
    changed = set_case_hidden(member=member, benchmark=record, key=case, hidden=hidden)
    state = "hidden" if hidden else "shown again"
    messages.success(request, f"The case “{changed.label}” is {state}.")
    return redirect("benchmark", project, slug)


def _ask_deletion(
    request: HttpRequest, member: Member, project: str, slug: str
) -> ConfirmationPage:
    record = load_benchmark(member, slug, project)
    return ConfirmationPage(
        question=f"Delete the benchmark “{record.title}”?",
        effects=(
            "The benchmark and all that depends on it vanish immediately. Unfinished runs are "
            "cancelled.",
            f"You can restore it for {DAYS_TO_RESTORE} days. Then it is removed for good.",
        ),
        button="Delete benchmark",
        back=reverse("benchmark", args=[project, slug]),
        dependents=list_benchmark_dependents(record),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    benchmark = delete_benchmark(member=member, project=project, slug=slug)
    messages.success(request, f"The benchmark “{benchmark.title}” was deleted.")
    return redirect("deleted")


def _save_or_try(
    request: HttpRequest, member: Member, record: Benchmark, form: DefinitionForm
) -> HttpResponse:
    """Save a new version of a benchmark, or start one trial of a draft."""
    if isinstance(form, TrialForm) and "try" in request.POST:
        return _try(member, record.project, record.slug, form)
    return _save(member, record.project, record.slug, form)


def _create_or_try(request: HttpRequest, member: Member, form: BenchmarkForm) -> HttpResponse:
    """Save a new benchmark, or start one trial of it."""
    data = form.cleaned_data
    project = load_project(member, data["project"])
    if "try" in request.POST:
        return _try(member, project, data["slug"], form)
    return _save(member, project, data["slug"], form)


def _save(member: Member, project: Project, slug: str, form: DefinitionForm) -> HttpResponse:
    source = _normalise_newlines(form.cleaned_data["source"])
    save_definition(member=member, project=project, slug=slug, source=source)
    return redirect("benchmark", project.slug, slug)


def _try(member: Member, project: Project, slug: str, form: TrialForm) -> HttpResponse:
    """Start one trial of the sent text, and show its run."""
    data = form.cleaned_data
    source = _normalise_newlines(data["source"])
    run = try_definition(
        member=member, project=project, slug=slug, source=source, host=data["host"]
    )
    wake_engine()
    return redirect("run", run.pk)


def _build_initial(request: HttpRequest) -> dict[str, Any]:
    suite, example = request.GET.get("suite", ""), request.GET.get("example", "")
    given = {"project": request.GET.get("project", ""), "slug": suite}
    if suite:
        return {**given, "source": load_suite(suite).source}
    if example:
        return {**given, "source": f"{build_schema_line()}{load_example(example).source}"}
    return {**given, "source": build_default_text()}


def _build_review(form: DefinitionForm) -> Any:
    return review(_normalise_newlines(form["source"].value() or ""))


def _find_version(versions: Sequence[Definition], wanted: str | None) -> Definition:
    if not versions:
        raise NotFoundError("this benchmark has no definition yet; add one on its page")
    if wanted is None:
        return versions[0]
    chosen = (each for each in versions if str(each.version) == wanted)
    definition = next(chosen, None)
    if definition is None:
        raise NotFoundError(f"this benchmark has no version {wanted}; its page lists all versions")
    return definition


def _normalise_newlines(source: str) -> str:
    """Browsers send CRLF; without edits the definition must stay the same text."""
    return source.replace("\r\n", "\n")
