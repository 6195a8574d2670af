"""Change points of histories, and their alerts."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from ninja import Query, Router
from ninja.responses import Status

from orchestrator.alerts import services
from orchestrator.alerts.models import AlertState
from orchestrator.alerts.selectors import filter_by_owner, load_alert, load_alerts
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.changes import (
    AlertOut,
    AlertPage,
    AssigneeIn,
    BaselineIn,
    BaselineOut,
    BaselinePage,
    ChangePointOut,
    ChangePointPage,
    ChangeRules,
    NoteIn,
    ReasonIn,
    SilenceIn,
    build_alert_out,
    build_baseline_out,
    build_change_point_out,
    build_rules_out,
)
from orchestrator.api.schemas.common import Text
from orchestrator.benchmarks.selectors import load_benchmark, load_case, load_commit, load_project
from orchestrator.benchmarks.services import set_change_rules
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.selectors import load_host_by_name
from orchestrator.regressions import change_points, confirmations
from orchestrator.results.models import ChangeState

router = Router(tags=["changes"])

CHANGE = "/change-points/{uuid:change_id}"
ALERT = "/alerts/{uuid:alert_id}"
RULES = "/projects/{project}/changes"


@router.get("/change-points", response=ChangePointPage, summary="List change points, newest first")
def list_change_points(
    request: CallerRequest,
    benchmark: Text | None = None,
    project: Text | None = None,
    host: Text | None = None,
    metric: Annotated[Text | None, Query(description="For example requests.rate.")] = None,
    state: ChangeState | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ChangePointPage:
    """Includes improvements. Superseded change points, which moved or disappeared, are not
    listed."""
    filters = {
        "series__benchmark__slug": benchmark,
        "series__benchmark__project__slug": project,
        "series__host__name": host,
        "series__metric__key": metric,
        "state": state,
    }
    rows = change_points.load_change_points(request.auth.member)
    rows = rows.filter(**{name: value for name, value in filters.items() if value is not None})
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ChangePointPage(
        change_points=[build_change_point_out(row) for row in page], next=following
    )


@router.get(CHANGE, response=ChangePointOut, summary="Show a change point")
def show_change_point(request: CallerRequest, change_id: UUID) -> ChangePointOut:
    return build_change_point_out(change_points.change_for(request.auth.member, change_id))


@router.post(CHANGE + "/confirm", response=ChangePointOut, summary="Measure a change again")
def confirm_change_point(request: CallerRequest, change_id: UUID) -> ChangePointOut:
    """Starts a confirmation run of its two commits, whatever the project's settings are."""
    member = request.auth.member
    confirmations.confirm_now(member=member, change_id=change_id)
    wake_engine()
    return build_change_point_out(change_points.change_for(member, change_id))


@router.post(CHANGE + "/dismiss", response=ChangePointOut, summary="Dismiss a change point")
def dismiss_change_point(
    request: CallerRequest, change_id: UUID, payload: ReasonIn
) -> ChangePointOut:
    member = request.auth.member
    change_points.dismiss(member=member, change_id=change_id, reason=payload.reason)
    return build_change_point_out(change_points.change_for(member, change_id))


@router.get("/baselines", response=BaselinePage, summary="List baselines of histories")
def list_baselines(
    request: CallerRequest,
    benchmark: Text | None = None,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> BaselinePage:
    """Newest first. The newest baseline of a series applies."""
    rows = change_points.load_baselines(request.auth.member)
    if benchmark is not None:
        rows = rows.filter(_build_filter("benchmark__slug", benchmark))
    if project is not None:
        rows = rows.filter(_build_filter("benchmark__project__slug", project))
    page, following = cut_page(rows, after=cursor, limit=limit)
    return BaselinePage(baselines=[build_baseline_out(each) for each in page], next=following)


@router.post("/baselines", response={201: BaselineOut}, summary="Set a new baseline of a history")
def create_baseline(request: CallerRequest, payload: BaselineIn) -> Status[BaselineOut]:
    """Earlier points stay on the charts, but are no longer used to detect changes."""
    member = request.auth.member
    benchmark = load_benchmark(member, payload.benchmark, payload.project)
    case = load_case(benchmark, payload.case)
    series = None
    if payload.host is not None and payload.metric is not None:
        series = change_points.find_series(
            case, load_host_by_name(member, payload.host), payload.metric
        )
    made = change_points.store_baseline(
        member=member,
        commit=load_commit(member, benchmark, payload.commit),
        reason=payload.reason,
        series=series,
        case=None if series else case,
    )
    return Status(
        HTTPStatus.CREATED,
        build_baseline_out(change_points.load_baselines(member).get(pk=made.pk)),
    )


@router.delete(
    "/baselines/{uuid:baseline_id}",
    response={204: None},
    summary="Detect changes in a whole history again",
)
def remove_baseline(request: CallerRequest, baseline_id: UUID) -> Status[None]:
    change_points.remove_baseline(member=request.auth.member, baseline_id=baseline_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/alerts", response=AlertPage, summary="List alerts, newest first")
def list_alerts(
    request: CallerRequest,
    state: AlertState | None = None,
    assignee: Annotated[Text | None, Query(description="A username, `me`, or `nobody`.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AlertPage:
    member = request.auth.member
    rows = filter_by_owner(load_alerts(member), member, owner=assignee or "")
    if state is not None:
        rows = rows.filter(state=state)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return AlertPage(alerts=[build_alert_out(alert) for alert in page], next=following)


@router.get(ALERT, response=AlertOut, summary="Show an alert")
def show_alert(request: CallerRequest, alert_id: UUID) -> AlertOut:
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/acknowledge", response=AlertOut, summary="Acknowledge an alert")
def acknowledge_alert(
    request: CallerRequest, alert_id: UUID, payload: NoteIn | None = None
) -> AlertOut:
    """Assigns the alert to the caller, unless it is assigned already."""
    note = payload.note if payload else ""
    services.acknowledge(member=request.auth.member, alert_id=alert_id, note=note)
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/confirm", response=AlertOut, summary="Confirm an alert")
def confirm_alert(
    request: CallerRequest, alert_id: UUID, payload: NoteIn | None = None
) -> AlertOut:
    """Assigns the alert to the caller, unless it is assigned already."""
    note = payload.note if payload else ""
    services.confirm_alert(member=request.auth.member, alert_id=alert_id, note=note)
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/silence", response=AlertOut, summary="Silence an alert")
def silence_alert(request: CallerRequest, alert_id: UUID, payload: SilenceIn) -> AlertOut:
    """The alert opens again automatically at `until`."""
    services.silence(
        member=request.auth.member, alert_id=alert_id, until=payload.until, note=payload.note
    )
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/accept", response=AlertOut, summary="Accept the new level of an alert")
def accept_alert(request: CallerRequest, alert_id: UUID, payload: ReasonIn) -> AlertOut:
    """Sets a new baseline of each of its series at the change point."""
    services.accept(member=request.auth.member, alert_id=alert_id, reason=payload.reason)
    return _load_alert_out(request, alert_id)


@router.put(ALERT + "/note", response=AlertOut, summary="Set the note of an alert")
def write_note(request: CallerRequest, alert_id: UUID, payload: NoteIn) -> AlertOut:
    """An empty text removes the note."""
    services.write_note(member=request.auth.member, alert_id=alert_id, note=payload.note)
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/resolve", response=AlertOut, summary="Resolve an alert")
def resolve_alert(request: CallerRequest, alert_id: UUID, payload: ReasonIn) -> AlertOut:
    services.resolve(member=request.auth.member, alert_id=alert_id, note=payload.reason)
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/dismiss", response=AlertOut, summary="Dismiss an alert")
def dismiss_alert(request: CallerRequest, alert_id: UUID, payload: ReasonIn) -> AlertOut:
    """Dismisses its change points too."""
    services.dismiss_alert(member=request.auth.member, alert_id=alert_id, reason=payload.reason)
    return _load_alert_out(request, alert_id)


@router.post(ALERT + "/reopen", response=AlertOut, summary="Reopen an alert")
def reopen_alert(request: CallerRequest, alert_id: UUID) -> AlertOut:
    services.reopen(member=request.auth.member, alert_id=alert_id)
    return _load_alert_out(request, alert_id)


@router.put(ALERT + "/assignee", response=AlertOut, summary="Assign an alert")
def assign_alert(request: CallerRequest, alert_id: UUID, payload: AssigneeIn) -> AlertOut:
    username = payload.assignee or ""
    services.assign(member=request.auth.member, alert_id=alert_id, username=username)
    return _load_alert_out(request, alert_id)


@router.get(RULES, response=ChangeRules, summary="Show the rules for suspected changes")
def show_change_rules(request: CallerRequest, project: Text) -> ChangeRules:
    return build_rules_out(load_project(request.auth.member, project))


@router.put(RULES, response=ChangeRules, summary="Change the rules for suspected changes")
def change_change_rules(request: CallerRequest, project: Text, payload: ChangeRules) -> ChangeRules:
    member = request.auth.member
    saved = set_change_rules(
        member=member,
        project=load_project(member, project),
        confirm=payload.confirm,
        bisect=payload.bisect,
        minutes_a_day=payload.machine_minutes_a_day,
    )
    return build_rules_out(saved)


def _load_alert_out(request: CallerRequest, alert_id: UUID) -> AlertOut:
    """Return the alert after the write, which may have changed more than requested."""
    return build_alert_out(load_alert(request.auth.member, alert_id))


def _build_filter(field: str, value: str) -> Q:
    """Return a filter for baselines, which belong to a series or to a case."""
    return Q(**{f"series__{field}": value}) | Q(**{f"case__{field}": value})
