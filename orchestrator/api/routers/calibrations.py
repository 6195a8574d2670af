"""Calibrations of hosts and their results."""

from http import HTTPStatus
from uuid import UUID

from django.http import HttpResponse
from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NumberCursor, cut_page
from orchestrator.api.schemas.calibrations import (
    CalibrationIn,
    CalibrationPage,
    build_calibration_out,
)
from orchestrator.api.schemas.runs import RunOut, build_run_out
from orchestrator.calibration.sensitivity import load_calibrations, present_epoch
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.selectors import load_host
from orchestrator.measurements.validity_issues import load_run_validity
from orchestrator.runs import selectors
from orchestrator.runs.calibration import NewCalibration, start_calibration

router = Router(tags=["calibrations"])


@router.post(
    "/hosts/{uuid:host_id}/calibrations", response={201: RunOut}, summary="Calibrate a host"
)
def calibrate_host(
    request: CallerRequest,
    response: HttpResponse,
    host_id: UUID,
    payload: CalibrationIn | None = None,
) -> Status[RunOut]:
    """Starts a run of one commit against itself. The result is in the list of the host's
    calibrations soon after the run has ended."""
    member = request.auth.member
    new = payload.build_calibration() if payload else NewCalibration()
    run = start_calibration(member=member, host_id=host_id, new=new)
    wake_engine()
    answer = build_run_out(selectors.load_progress(selectors.load_run(member, run.pk)))
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get(
    "/hosts/{uuid:host_id}/calibrations",
    response=CalibrationPage,
    summary="List a host's calibrations, newest first",
)
def list_calibrations(
    request: CallerRequest, host_id: UUID, cursor: NumberCursor = None, limit: Limit = 50
) -> CalibrationPage:
    """A calibration from before a change of the host is not `present`."""
    host = load_host(request.auth.member, host_id)
    epoch = present_epoch(host)
    page, following = cut_page(load_calibrations(host), after=cursor, limit=limit)
    validity = load_run_validity([each.run_id for each in page])
    return CalibrationPage(
        calibrations=[build_calibration_out(each, epoch, validity[each.run_id]) for each in page],
        next=following,
    )
