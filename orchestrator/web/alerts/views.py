"""Alerts: the list, the page of one, and its actions."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import load_members
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertState
from orchestrator.alerts.recovery import find_fix
from orchestrator.alerts.selectors import (
    count_alerts,
    filter_by_owner,
    load_alert,
    load_alerts,
    load_bisections,
    load_broken_cases,
    sort_by_change,
)
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.forges.forge_links import load_forge_links
from orchestrator.regressions.confirmations import confirm_now
from orchestrator.web.access import for_member
from orchestrator.web.alerts.actions import ACTIONS, apply_action
from orchestrator.web.alerts.presenters import (
    build_alert_history,
    build_alert_view,
    build_bisection_view,
    change_view,
    draw_change,
)
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.sentences import join_sentences

ALERTS_A_PAGE = 25
#: The states in the list by default.
TO_DO = (AlertState.OPEN, AlertState.ACKNOWLEDGED, AlertState.CONFIRMED)


@for_member
def alerts(request: HttpRequest, member: Member) -> HttpResponse:
    """Show alerts that need attention; `?state=` for others, `?state=all` for all."""
    return _render_alerts_page(request, member)


@for_member
def change_many(request: HttpRequest, member: Member) -> HttpResponse:
    """Apply one action to several alerts. Those that refuse are named; the others are changed."""
    back = f"{reverse('alerts')}?{request.GET.urlencode()}"
    if request.method != "POST":
        return redirect(back)
    wanted = request.POST.getlist("alert")
    if not wanted:
        return _render_alerts_page(request, member, problem="Select at least one alert.")
    refused = []
    for number in wanted:
        try:
            apply_action(member, UUID(number), request.POST)
        except (*FORM_ERRORS, ValueError) as error:
            refused.append(str(error))
    done = len(wanted) - len(refused)
    if refused:
        reasons = join_sentences(dict.fromkeys(refused))
        problem = f"{done} of {len(wanted)} alerts changed. {reasons}"
        return _render_alerts_page(request, member, problem=problem)
    messages.success(request, f"{done} alert{'' if done == 1 else 's'} changed.")
    return redirect(back)


def _render_alerts_page(request: HttpRequest, member: Member, *, problem: str = "") -> HttpResponse:
    query = request.GET
    chosen, rows = _filter_by_state(load_alerts(member), query.get("state", ""))
    owner, largest = query.get("owner", ""), query.get("order") == "largest"
    rows = filter_by_owner(rows, member, owner=owner)
    page = Paginator(sort_by_change(rows) if largest else rows, ALERTS_A_PAGE).get_page(
        query.get("page")
    )
    counts = count_alerts(member, owner=owner)
    context = {
        "page": page,
        "alerts": [build_alert_view(alert) for alert in page],
        "chosen": chosen,
        "owner": owner,
        "largest": largest,
        "states": [(each.value, each.label, counts[each]) for each in AlertState],
        "to_do": sum(counts[each] for each in TO_DO),
        "all": sum(counts.values()),
        "any": bool(owner) or any(counts.values()),
        "kept": _build_kept_query(query, "owner", "order"),
        "more": f"&{_build_kept_query(query, 'state', 'owner', 'order')}",
        "members": load_members(member),
        "problem": problem,
        **_build_form_context(request),
    }
    return render(request, "alerts/list.html", context, status=422 if problem else 200)


def _filter_by_state(rows: QuerySet[Alert], state: str) -> tuple[str, QuerySet[Alert]]:
    """Return the chosen state with its alerts; by default those that need attention."""
    if state in AlertState.values:
        return state, rows.filter(state=state)
    return ("all", rows) if state == "all" else ("", rows.filter(state__in=TO_DO))


def _build_kept_query(query: QueryDict, *names: str) -> str:
    return urlencode({name: query[name] for name in names if query.get(name)})


def _build_form_context(request: HttpRequest) -> dict[str, Any]:
    """Return the choices of the forms, and the input if a form is shown again with an error."""
    return {
        "actions": ACTIONS,
        "tomorrow": f"{utc_now() + timedelta(days=1):%Y-%m-%d}",
        "given": request.POST,
        "marked": set(request.POST.getlist("alert")),
    }


@for_member
def alert(request: HttpRequest, member: Member, alert_id: UUID) -> HttpResponse:
    return _render_alert_page(request, member, alert_id)


@for_member
@require_POST
def change(request: HttpRequest, member: Member, alert_id: UUID) -> HttpResponse:
    """Apply an action to an alert: `do` is its name, `note` the reason."""
    try:
        apply_action(member, alert_id, request.POST)
    except FORM_ERRORS as error:
        return _render_alert_page(request, member, alert_id, error=error)
    return redirect("alert", alert_id)


@for_member
@require_POST
def confirm(request: HttpRequest, member: Member, alert_id: UUID, change_id: UUID) -> HttpResponse:
    """Start a confirmation run of a change point."""
    try:
        run = confirm_now(member=member, change_id=change_id)
    except FORM_ERRORS as error:
        return _render_alert_page(request, member, alert_id, error=error)
    wake_engine()
    messages.success(request, "Both commits are measured again; this is the run.")
    return redirect("run", run.pk)


def _render_alert_page(
    request: HttpRequest, member: Member, alert_id: UUID, *, error: Exception | None = None
) -> HttpResponse:
    """Show the page; an error is shown at the field that it names, otherwise at the top."""
    record = load_alert(member, alert_id)
    shown, main = build_alert_view(record), record.change_point
    links = load_forge_links(record.benchmark.project)
    context = {
        "shown": shown,
        "main": main,
        "drawing": draw_change(shown.lead.row) if shown.lead else None,
        "links": links,
        "diff_url": links.build_diff_url(main.before.sha, main.commit.sha)
        if links and main is not None
        else "",
        "changes": [change_view(row) for row in record.change_points.all()],
        "searches": [build_bisection_view(main, each) for each in load_bisections(record)]
        if main is not None
        else [],
        "broken_cases": load_broken_cases(record),
        "members": load_members(member),
        "problem": str(error or ""),
        "problem_field": getattr(error, "field", None) or "",
        "story": build_alert_history(record),
        "fix": None if record.fixed_by or record.state in ALERT_ENDED else find_fix(record),
        "ended": record.state in ALERT_ENDED,
        **_build_form_context(request),
    }
    return render(request, "alerts/detail.html", context, status=422 if error else 200)
