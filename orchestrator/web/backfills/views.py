"""Backfills: the form with the estimate before the start, and the runs of one."""

from collections import Counter
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.refs import resolve_as_fetched
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.runs.backfills import (
    BackfillPlan,
    cancel_backfill,
    count_backfill_runs,
    explain_run,
    load_backfill,
    load_backfill_runs,
    load_backfills,
    load_skipped,
    plan_backfill,
    start_backfill,
)
from orchestrator.runs.states import RUN_ENDED
from orchestrator.web.access import for_member
from orchestrator.web.backfills.forms import BackfillForm
from orchestrator.web.live_parts import render_live_page
from orchestrator.web.refs import load_ref_choices

#: The most backfills in the list, the newest.
MOST_LISTED = 100


@for_member
def backfills(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the newest backfills; the list reloads itself until all runs have ended."""
    rows = list(load_backfills(member)[:MOST_LISTED])
    counts = count_backfill_runs(rows)
    context = {
        "rows": [(each, counts[each.pk].items()) for each in rows],
        "going_on": any(state not in RUN_ENDED for states in counts.values() for state in states),
    }
    tag = _build_tag([[str(pk), list(states.items())] for pk, states in counts.items()])
    return render_live_page(request, "backfills/list.html", context, part="backfills", tag=tag)


@for_member
def new_backfill(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form. A submitted form shows its estimate first; `start` starts it."""
    if request.method != "POST":
        initial = {"benchmark": request.GET.get("benchmark", "")}
        form = BackfillForm(member, initial=initial)
        form.preselect_host()
        return _show_form(request, form)
    form = BackfillForm(member, request.POST)
    if "start" not in request.POST:
        return _show_form(request, form, form.create(lambda: _plan(member, form)))
    started = form.create(lambda: start_backfill(member=member, request=form.build_request()))
    if started is None:
        return _show_form(request, form)
    wake_engine()
    return redirect("backfill", started.pk)


def _plan(member: Member, form: BackfillForm) -> BackfillPlan:
    with resolve_as_fetched():
        return plan_backfill(member=member, request=form.build_request())


@for_member
def backfill(request: HttpRequest, member: Member, backfill_id: UUID) -> HttpResponse:
    """Show each commit with its run, why it failed, and why others were left out.

    The page reloads its part until all runs have ended.
    """
    shown = load_backfill(member, backfill_id)
    runs = load_backfill_runs(shown)
    reasons = [explain_run(run) for run in runs]
    context = {
        "backfill": shown,
        "rows": [
            (run, run.variants.all()[0].commit, reason)
            for run, reason in zip(runs, reasons, strict=True)
        ],
        "skipped": load_skipped(shown),
        "states": sorted(Counter(run.state for run in runs).items()),
        "unended": sum(run.state not in RUN_ENDED for run in runs),
    }
    tag = _build_tag([[str(run.pk), run.state] for run in runs], reasons)
    return render_live_page(request, "backfills/detail.html", context, part="backfill", tag=tag)


@for_member
@require_POST
def cancel(request: HttpRequest, member: Member, backfill_id: UUID) -> HttpResponse:
    count = cancel_backfill(member=member, backfill_id=backfill_id)
    wake_engine()
    messages.success(request, f"{count} run{'' if count == 1 else 's'} cancelled.")
    return redirect("backfill", backfill_id)


def _build_tag(*shown: object) -> str:
    return f'"{hash_value(shown)[:32]}"'


def _show_form(
    request: HttpRequest, form: BackfillForm, plan: BackfillPlan | None = None
) -> HttpResponse:
    key = str(form["benchmark"].value() or "")
    context = {"form": form, "plan": plan, "refs": load_ref_choices(form.member, key)}
    return render(request, "backfills/new.html", context, status=form.status)
