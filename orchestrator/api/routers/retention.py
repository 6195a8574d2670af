"""Retention and pins."""

from http import HTTPStatus

from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.retention import (
    PinIn,
    PinOut,
    PinPage,
    RemovalPage,
    RetentionIn,
    RetentionOut,
    build_pin_out,
    build_removal_out,
    build_retention_out,
)
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.measurements.removals import load_removals
from orchestrator.retention.pins import load_pins, pin_commit, pin_run, unpin
from orchestrator.retention.settings import RetentionSettings, load_retention, save_retention

router = Router(tags=["retention"])

PATH = "/projects/{project}"


@router.get(PATH + "/retention", response=RetentionOut, summary="Show the retention")
def show_retention(request: CallerRequest, project: Text) -> RetentionOut:
    return build_retention_out(load_retention(load_project(request.auth.member, project)))


@router.put(PATH + "/retention", response=RetentionOut, summary="Change the retention")
def change_retention(request: CallerRequest, project: Text, payload: RetentionIn) -> RetentionOut:
    """For maintainers. Data that exceed the new limits are removed within minutes."""
    member = request.auth.member
    wanted = RetentionSettings(**payload.model_dump())
    instance = load_project(member, project)
    return build_retention_out(save_retention(member=member, project=instance, wanted=wanted))


@router.get(PATH + "/removals", response=RemovalPage, summary="List removed data")
def list_removals(
    request: CallerRequest, project: Text, cursor: NumberCursor = None, limit: Limit = 50
) -> RemovalPage:
    """By run and kind, newest first."""
    rows = load_removals(load_project(request.auth.member, project))
    page, following = cut_page(rows, after=cursor, limit=limit)
    return RemovalPage(removals=[build_removal_out(each) for each in page], next=following)


@router.get(PATH + "/pins", response=PinPage, summary="List pins, newest first")
def list_pins(
    request: CallerRequest, project: Text, cursor: NumberCursor = None, limit: Limit = 50
) -> PinPage:
    rows = load_pins(load_project(request.auth.member, project))
    page, following = cut_page(rows, after=cursor, limit=limit)
    return PinPage(pins=[build_pin_out(each) for each in page], next=following)


@router.post(PATH + "/pins", response={201: PinOut}, summary="Pin a commit or a run")
def create_pin(request: CallerRequest, project: Text, payload: PinIn) -> Status[PinOut]:
    """409 if it is pinned already."""
    member = request.auth.member
    instance = load_project(member, project)
    if payload.run is not None:
        pin = pin_run(member=member, run_id=payload.run, reason=payload.reason, project=instance)
    elif payload.commit is not None:
        pin = pin_commit(member=member, project=instance, ref=payload.commit, reason=payload.reason)
    else:
        raise InvalidRequestError("name a commit or a run")
    return Status(HTTPStatus.CREATED, build_pin_out(pin))


@router.delete(PATH + "/pins/{int:pin_id}", response={204: None}, summary="Remove a pin")
def remove_pin(request: CallerRequest, project: Text, pin_id: int) -> Status[None]:
    member = request.auth.member
    unpin(member=member, project=load_project(member, project), pin_id=pin_id)
    return Status(HTTPStatus.NO_CONTENT, None)
