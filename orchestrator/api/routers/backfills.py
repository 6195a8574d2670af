"""Backfills, which measure earlier commits."""

from http import HTTPStatus
from uuid import UUID

from django.http import HttpResponse
from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.backfills import (
    BackfillIn,
    BackfillOut,
    BackfillPage,
    BackfillPlanOut,
    build_backfill_out,
    build_backfill_plan_out,
    build_backfill_summary_out,
)
from orchestrator.benchmarks.refs import resolve_as_fetched
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.runs import backfills

router = Router(tags=["backfills"])


@router.post("/backfills/plan", response=BackfillPlanOut, summary="Estimate a backfill")
def plan_backfill(request: CallerRequest, payload: BackfillIn) -> BackfillPlanOut:
    """The commits and the expected time of a backfill; nothing is started."""
    with resolve_as_fetched():
        plan = backfills.plan_backfill(member=request.auth.member, request=payload.build_request())
    return build_backfill_plan_out(plan)


@router.post("/backfills", response={201: BackfillOut}, summary="Start a backfill")
def start_backfill(
    request: CallerRequest, response: HttpResponse, payload: BackfillIn
) -> Status[BackfillOut]:
    """Queues one run per commit, with the lowest priority. 409 if no commit is left to measure, so
    a repeated request adds nothing."""
    member = request.auth.member
    backfill = backfills.start_backfill(member=member, request=payload.build_request())
    wake_engine()
    answer = build_backfill_out(backfills.load_backfill(member, backfill.pk))
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get("/backfills", response=BackfillPage, summary="List backfills, newest first")
def list_backfills(
    request: CallerRequest, cursor: Cursor = None, limit: Limit = 50
) -> BackfillPage:
    rows = backfills.load_backfills(request.auth.member)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return BackfillPage(
        backfills=[build_backfill_summary_out(each) for each in page], next=following
    )


@router.get(
    "/backfills/{uuid:backfill_id}", response=BackfillOut, summary="Show a backfill and its runs"
)
def show_backfill(request: CallerRequest, backfill_id: UUID) -> BackfillOut:
    return build_backfill_out(backfills.load_backfill(request.auth.member, backfill_id))


@router.post(
    "/backfills/{uuid:backfill_id}/cancel", response=BackfillOut, summary="Cancel a backfill"
)
def cancel_backfill(request: CallerRequest, backfill_id: UUID) -> BackfillOut:
    """Cancels all its runs that have not ended; existing results remain."""
    member = request.auth.member
    backfills.cancel_backfill(member=member, backfill_id=backfill_id)
    wake_engine()
    return build_backfill_out(backfills.load_backfill(member, backfill_id))
