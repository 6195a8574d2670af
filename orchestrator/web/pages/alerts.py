"""Alerts: the list, one of them, and what is done about it."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import members_of
from orchestrator.alerts import services
from orchestrator.alerts.models import AlertState
from orchestrator.alerts.selectors import alert_for, alerts_of, counts_of, searches_of
from orchestrator.dispatch.waking import wake_engine
from orchestrator.results.changes.duels import confirm_now
from orchestrator.web.access import for_member
from orchestrator.web.alert_views import alert_view, change_view, search_view
from orchestrator.web.forms import FORM_ERRORS

ALERTS_A_PAGE = 25
#: What the list shows where no state is chosen.
TO_DO = (AlertState.OPEN, AlertState.ACKNOWLEDGED)


@for_member
def alerts(request: HttpRequest, member: Member) -> HttpResponse:
    """Those that somebody should look at; `?state=` for others, `?state=all` for all."""
    chosen = request.GET.get("state", "")
    rows = alerts_of(member)
    if chosen in AlertState.values:
        rows = rows.filter(state=chosen)
    elif chosen != "all":
        chosen = ""
        rows = rows.filter(state__in=TO_DO)
    page = Paginator(rows, ALERTS_A_PAGE).get_page(request.GET.get("page"))
    counts = counts_of(member)
    context = {
        "page": page,
        "alerts": [alert_view(alert) for alert in page],
        "chosen": chosen,
        "states": [(each.value, each.label, counts[each]) for each in AlertState],
        "to_do": sum(counts[each] for each in TO_DO),
        "all": sum(counts.values()),
        "more": f"&state={chosen}" if chosen else "",
    }
    return render(request, "alerts/list.html", context)


@for_member
def alert(request: HttpRequest, member: Member, alert_id: UUID) -> HttpResponse:
    return _page(request, member, alert_id)


@for_member
@require_POST
def change(request: HttpRequest, member: Member, alert_id: UUID) -> HttpResponse:
    """Does with an alert what the button says: `do` is its name, `note` the reason."""
    note = request.POST.get("note", "")
    try:
        match request.POST.get("do", ""):
            case "acknowledge":
                services.acknowledge(member=member, alert_id=alert_id, note=note)
            case "resolve":
                services.resolve(member=member, alert_id=alert_id, note=note)
            case "dismiss":
                services.dismiss_alert(member=member, alert_id=alert_id, reason=note)
            case "reopen":
                services.reopen(member=member, alert_id=alert_id)
            case "assign":
                name = request.POST.get("assignee", "")
                services.assign(member=member, alert_id=alert_id, username=name)
    except FORM_ERRORS as error:
        return _page(request, member, alert_id, problem=str(error))
    return redirect("alert", alert_id)


@for_member
@require_POST
def confirm(request: HttpRequest, member: Member, alert_id: UUID, change_id: UUID) -> HttpResponse:
    """Has a change point measured again."""
    try:
        run = confirm_now(member=member, change_id=change_id)
    except FORM_ERRORS as error:
        return _page(request, member, alert_id, problem=str(error))
    wake_engine()
    messages.success(request, "Both commits are measured again; this is the run.")
    return redirect("run", run.pk)


def _page(
    request: HttpRequest, member: Member, alert_id: UUID, *, problem: str = ""
) -> HttpResponse:
    found = alert_for(member, alert_id)
    context = {
        "shown": alert_view(found),
        "changes": [change_view(row) for row in found.change_points.all()],
        "searches": [search_view(found.change_point, each) for each in searches_of(found)],
        "members": members_of(member),
        "problem": problem,
    }
    return render(request, "alerts/detail.html", context, status=422 if problem else 200)
