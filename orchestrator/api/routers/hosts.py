"""Hosts: their state, settings and golden runs."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from ninja import Query, Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.fleet import HostIn
from orchestrator.api.schemas.hosts import (
    GoldenIn,
    GoldenOut,
    HostDetailOut,
    HostPage,
    HostSettingsIn,
    MaintenanceIn,
    ReservationIn,
    build_golden_out,
    build_host_detail_out,
    build_host_out,
)
from orchestrator.calibration.golden import load_golden_statuses, reset_references
from orchestrator.fleet import host_settings, reservations, selectors, services
from orchestrator.fleet.models import HostState
from orchestrator.runs.golden import remove_golden, set_golden

router = Router(tags=["hosts"])


@router.get("/hosts", response=HostPage, summary="List hosts, newest first")
def list_hosts(
    request: CallerRequest,
    state: HostState | None = None,
    profile: Annotated[Text | None, Query(description="The slug of a hardware profile.")] = None,
    tag: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HostPage:
    member = request.auth.member
    rows = selectors.load_hosts(member)
    if state:
        rows = rows.filter(state=state)
    if profile:
        rows = rows.filter(profile__slug=profile)
    if tag:
        rows = rows.filter(tags__contains=[tag])
    page, following = cut_page(rows, after=cursor, limit=limit)
    golden = load_golden_statuses(member)
    return HostPage(
        hosts=[build_host_out(host, golden.get(host.pk)) for host in page], next=following
    )


@router.post("/hosts", response={201: HostDetailOut}, summary="Add a host")
def add_host(request: CallerRequest, payload: HostIn) -> Status[HostDetailOut]:
    """For maintainers. The host is used only after its checks are complete: start them next."""
    member = request.auth.member
    host = services.enter_host(member=member, new=payload.new_host())
    return Status(HTTPStatus.CREATED, load_host_detail(member, host.pk))


@router.delete("/hosts/{uuid:host_id}", response={204: None}, summary="Remove a host")
def remove_host(request: CallerRequest, host_id: UUID) -> Status[None]:
    """For maintainers. A host with results is retired instead, and its results are kept."""
    services.remove_host(member=request.auth.member, host_id=host_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/hosts/{uuid:host_id}", response=HostDetailOut, summary="Show a host")
def show_host(request: CallerRequest, host_id: UUID) -> HostDetailOut:
    return load_host_detail(request.auth.member, host_id)


@router.patch(
    "/hosts/{uuid:host_id}", response=HostDetailOut, summary="Change the settings of a host"
)
def change_host(request: CallerRequest, host_id: UUID, payload: HostSettingsIn) -> HostDetailOut:
    """Tags, opening hours, tuning and limits, for jobs that start from now on."""
    given = payload.model_dump(exclude_unset=True)
    host_settings.set_host_settings(member=request.auth.member, host_id=host_id, **given)
    return load_host_detail(request.auth.member, host_id)


@router.post(
    "/hosts/{uuid:host_id}/maintenance",
    response=HostDetailOut,
    summary="Put a host in maintenance",
)
def start_host_maintenance(
    request: CallerRequest, host_id: UUID, payload: MaintenanceIn | None = None
) -> HostDetailOut:
    """No new job starts on the host; a running one may end. `run` is null after that."""
    reason = payload.reason if payload else ""
    host_settings.put_in_maintenance(member=request.auth.member, host_id=host_id, reason=reason)
    return load_host_detail(request.auth.member, host_id)


@router.post("/hosts/{uuid:host_id}/release", response=HostDetailOut, summary="Release a host")
def release_host(request: CallerRequest, host_id: UUID) -> HostDetailOut:
    """Lets jobs run again on a host that is in maintenance, quarantined or retired."""
    host_settings.release_host(member=request.auth.member, host_id=host_id)
    return load_host_detail(request.auth.member, host_id)


@router.post("/hosts/{uuid:host_id}/reservation", response=HostDetailOut, summary="Reserve a host")
def reserve_host(request: CallerRequest, host_id: UUID, payload: ReservationIn) -> HostDetailOut:
    """No new job starts on the host for this time, for work of yours; a running one may end. It
    replaces an earlier reservation."""
    reservations.reserve_host(member=request.auth.member, host_id=host_id, **payload.model_dump())
    return load_host_detail(request.auth.member, host_id)


@router.delete(
    "/hosts/{uuid:host_id}/reservation",
    response=HostDetailOut,
    summary="End the reservation of a host",
)
def end_reservation(request: CallerRequest, host_id: UUID) -> HostDetailOut:
    """409 if it was made on the host itself: it ends there."""
    reservations.end_reservation(member=request.auth.member, host_id=host_id)
    return load_host_detail(request.auth.member, host_id)


@router.post("/hosts/{uuid:host_id}/retire", response=HostDetailOut, summary="Retire a host")
def retire_host(request: CallerRequest, host_id: UUID) -> HostDetailOut:
    """Takes the host out of use; its results are kept."""
    host_settings.retire_host(member=request.auth.member, host_id=host_id)
    return load_host_detail(request.auth.member, host_id)


@router.put("/hosts/{uuid:host_id}/golden", response=GoldenOut, summary="Set a host's golden run")
def set_golden_job(request: CallerRequest, host_id: UUID, payload: GoldenIn) -> GoldenOut:
    """The host measures this commit regularly; it is quarantined when the results drift."""
    set_golden(member=request.auth.member, host_id=host_id, new=payload.build_golden())
    return build_golden_out(load_golden_statuses(request.auth.member)[host_id])


@router.delete(
    "/hosts/{uuid:host_id}/golden", response={204: None}, summary="Remove a host's golden run"
)
def remove_golden_job(request: CallerRequest, host_id: UUID) -> Status[None]:
    remove_golden(member=request.auth.member, host_id=host_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.post(
    "/hosts/{uuid:host_id}/golden/reset",
    response=HostDetailOut,
    summary="Reset the reference of a host",
)
def reset_golden_references(request: CallerRequest, host_id: UUID) -> HostDetailOut:
    """For a host whose speed has changed permanently for a known reason."""
    reset_references(member=request.auth.member, host_id=host_id)
    return load_host_detail(request.auth.member, host_id)


def load_host_detail(member: Member, host_id: UUID) -> HostDetailOut:
    """Return the answer that shows a host."""
    host = selectors.load_host(member, host_id)
    return build_host_detail_out(
        host,
        load_golden_statuses(member).get(host.pk),
        snapshot=selectors.find_latest_snapshot(host),
        changes=list(selectors.load_host_changes(host)),
        contradictions=selectors.load_contradictions(host),
    )
