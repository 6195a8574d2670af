"""Schedules, which start runs automatically."""

from http import HTTPStatus
from uuid import UUID

from django.http import HttpResponse
from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.schedules import (
    EnabledIn,
    ScheduleIn,
    ScheduleOut,
    SchedulePage,
    build_schedule_out,
)
from orchestrator.calibration.resolution import with_rounds
from orchestrator.runs import schedules
from orchestrator.runs.models import Schedule
from orchestrator.runs.selectors import load_schedule, load_schedules

router = Router(tags=["schedules"])

SCHEDULE = "/schedules/{uuid:schedule_id}"


@router.get("/schedules", response=SchedulePage, summary="List schedules, newest first")
def list_schedules(
    request: CallerRequest,
    benchmark: Text | None = None,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> SchedulePage:
    rows = load_schedules(request.auth.member)
    if benchmark:
        rows = rows.filter(benchmark__slug=benchmark)
    if project:
        rows = rows.filter(benchmark__project__slug=project)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return SchedulePage(schedules=[build_schedule_out(each) for each in page], next=following)


@router.post("/schedules", response={201: ScheduleOut}, summary="Create a schedule")
def create_schedule(
    request: CallerRequest, response: HttpResponse, payload: ScheduleIn
) -> Status[ScheduleOut]:
    """Refused if a run of the schedule could not start now; 409 if the name is taken."""
    member = request.auth.member
    new = _check_schedule(member, payload.build_schedule())
    answer = build_schedule_out(schedules.create_schedule(member=member, new=new))
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get(SCHEDULE, response=ScheduleOut, summary="Show a schedule")
def show_schedule(request: CallerRequest, schedule_id: UUID) -> ScheduleOut:
    return build_schedule_out(load_schedule(request.auth.member, schedule_id))


@router.put(SCHEDULE, response=ScheduleOut, summary="Change a schedule")
def change_schedule(request: CallerRequest, schedule_id: UUID, payload: ScheduleIn) -> ScheduleOut:
    """Replaces all settings except whether it is enabled. From now on the token's owner starts its
    runs."""
    member = request.auth.member
    load_schedule(member, schedule_id)
    new = _check_schedule(member, payload.build_schedule())
    changed: Schedule = schedules.change_schedule(member=member, schedule_id=schedule_id, new=new)
    return build_schedule_out(changed)


@router.patch(SCHEDULE, response=ScheduleOut, summary="Turn a schedule on or off")
def enable_schedule(request: CallerRequest, schedule_id: UUID, payload: EnabledIn) -> ScheduleOut:
    """When enabled again, it does not catch up on missed starts."""
    member = request.auth.member
    schedules.set_schedule_enabled(member=member, schedule_id=schedule_id, enabled=payload.enabled)
    return build_schedule_out(load_schedule(member, schedule_id))


@router.delete(SCHEDULE, response={204: None}, summary="Delete a schedule")
def delete_schedule(request: CallerRequest, schedule_id: UUID) -> Status[None]:
    """Its runs remain."""
    schedules.delete_schedule(member=request.auth.member, schedule_id=schedule_id)
    return Status(HTTPStatus.NO_CONTENT, None)


def _check_schedule(member: Member, new: schedules.NewSchedule) -> schedules.NewSchedule:
    """Raise as well if the requested `resolution` cannot be reached."""
    if new.resolution is not None:
        run_request = schedules.build_new_request(member, new)
        with_rounds(member=member, request=run_request, change=new.resolution)
    return new
