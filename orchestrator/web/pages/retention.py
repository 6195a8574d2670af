"""What a project keeps, for how long, and what went: its page."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fetch_requests import fetch_of
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.selectors import project_for
from orchestrator.measurements.removals import log_of, totals_of
from orchestrator.retention.pins import kept_of, pin_commit, pin_run, pins_of, unpin
from orchestrator.retention.settings import retention_of, save_retention
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.retention_forms import PinForm, RetentionForm, initial_of


@for_member
def project(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """The project with its retention; a post changes that."""
    found = project_for(member, slug)
    posted = request.POST if request.method == "POST" else None
    form = RetentionForm(member, posted, initial=initial_of(retention_of(found)))
    if form.is_valid():
        try:
            save_retention(member=member, project=found, wanted=form.wanted())
        except FORM_ERRORS as error:
            form.show_error(error, default="files_days")
        else:
            messages.success(request, "The retention is changed; it holds from the next minute on.")
            return redirect("project", slug)
    return _page(request, member, found, form, PinForm(member))


@for_member
@require_POST
def pin(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Keeps a commit for ever."""
    found = project_for(member, slug)
    form = PinForm(member, request.POST)
    if form.is_valid():
        try:
            pin_commit(member=member, project=found, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error, default="ref")
        else:
            return redirect("project", slug)
    retention = RetentionForm(member, initial=initial_of(retention_of(found)))
    return _page(request, member, found, retention, form, status=form.status)


@for_member
@require_POST
def remove_pin(request: HttpRequest, member: Member, slug: str, pin_id: int) -> HttpResponse:
    unpin(member=member, project=project_for(member, slug), pin_id=pin_id)
    return redirect("project", slug)


@for_member
@require_POST
def keep_run(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """Keeps a run for ever, for the reason that the form gives."""
    pin_run(member=member, run_id=run_id, reason=request.POST.get("reason", ""))
    messages.success(request, "This run is kept for ever.")
    return redirect("run", run_id)


def _page(
    request: HttpRequest,
    member: Member,
    found: Project,
    form: RetentionForm,
    pin_form: PinForm,
    status: int | None = None,
) -> HttpResponse:
    fetch = fetch_of(found)
    context = {
        "fetch": fetch,
        "is_awaited": fetch.is_going_on,
        "project": found,
        "form": form,
        "pin_form": pin_form,
        "pins": pins_of(found),
        "held": _held(found),
        "totals": totals_of(found),
        "log": log_of(found),
    }
    return render(request, "benchmarks/project.html", context, status=status or form.status)


def _held(found: Project) -> list[dict[str, Any]]:
    """Commits that are kept for another reason than a pin of their own."""
    kept = kept_of(found)
    reasons = {
        pk: [*kept.commits.get(pk, ()), *kept.points.get(pk, ())]
        for pk in {*kept.commits, *kept.points}
    }
    told = {
        pk: [why for why in each if not why.startswith("pinned: ")] for pk, each in reasons.items()
    }
    commits = Commit.objects.in_bulk([pk for pk, each in told.items() if each])
    rows = sorted(commits.values(), key=lambda each: each.committed_at, reverse=True)
    return [{"commit": each, "why": told[each.pk]} for each in rows]
