"""Starting runs, following them, cancelling them."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from django.http import HttpResponse
from ninja import Header, Query, Router
from ninja.responses import Status
from pydantic import StringConstraints

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, page_of
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.plans import PlanOut, plan_out
from orchestrator.api.schemas.runs import RunIn, RunOut, RunPage, run_out, run_summary_out
from orchestrator.api.schemas.trials import TrialPage, trial_summary_out
from orchestrator.api.waiting import wait_for_change
from orchestrator.dispatch.waking import wake_engine
from orchestrator.runs import plans, selectors, services
from orchestrator.runs.models import Trigger
from orchestrator.runs.states import RUN_ENDED, RunState, Validity

router = Router(tags=["runs"])

Key = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]*$")]


@router.post("/runs", response={200: RunOut, 201: RunOut}, summary="Start a run")
def start_run(
    request: CallerRequest,
    response: HttpResponse,
    payload: RunIn,
    idempotency_key: Annotated[
        Key | None,
        Header(
            alias="Idempotency-Key",
            description="The same key makes one run only, however often the request is sent.",
        ),
    ] = None,
) -> Status[RunOut]:
    """201 for a new run, 200 for the run that the same idempotency key made before."""
    run_id, is_new = _start(request, payload.request(), idempotency_key)
    answer = _run_out(request.auth.member, run_id)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED if is_new else HTTPStatus.OK, answer)


@router.post("/runs/plan", response=PlanOut, summary="Tell what a run would take")
def plan_run(request: CallerRequest, payload: RunIn) -> PlanOut:
    """The chosen cases and the expected time of a request to start a run; nothing is started."""
    return plan_out(plans.plan_run(member=request.auth.member, request=payload.request()))


@router.get("/runs", response=RunPage, summary="List runs, newest first")
def list_runs(
    request: CallerRequest,
    state: RunState | None = None,
    benchmark: Text | None = None,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RunPage:
    rows = selectors.runs_of(request.auth.member)
    if state:
        rows = rows.filter(state=state)
    if benchmark:
        rows = rows.filter(definition__benchmark__slug=benchmark)
    if project:
        rows = rows.filter(definition__benchmark__project__slug=project)
    runs, following = page_of(rows, after=cursor, limit=limit)
    return RunPage(runs=[run_summary_out(run) for run in runs], next=following)


@router.get("/runs/{uuid:run_id}", response=RunOut, summary="Show a run")
def show_run(
    request: CallerRequest,
    run_id: UUID,
    wait: Annotated[
        float, Query(ge=0, le=60, description="Seconds to wait for another state of the run.")
    ] = 0,
) -> RunOut:
    """With `wait`, the answer comes as soon as the state changes; at once for an ended run."""
    member = request.auth.member
    if wait:
        wait_for_change(
            lambda: selectors.run_state_for(member, run_id), wait_s=wait, ended=RUN_ENDED
        )
    return _run_out(member, run_id)


@router.post("/runs/{uuid:run_id}/cancel", response=RunOut, summary="Cancel a run")
def cancel_run(request: CallerRequest, run_id: UUID) -> RunOut:
    """Queued jobs end now, active ones within seconds; what was measured is kept."""
    services.cancel_run(member=request.auth.member, run_id=run_id)
    return _run_out(request.auth.member, run_id)


@router.get("/runs/{uuid:run_id}/trials", response=TrialPage, summary="List the trials of a run")
def list_trials(
    request: CallerRequest,
    run_id: UUID,
    invalid: Annotated[bool, Query(description="List invalid trials as well.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> TrialPage:
    """Invalid trials are left out, and counted, unless they are asked for."""
    rows = selectors.trials_of(selectors.run_for(request.auth.member, run_id))
    left_out = 0 if invalid else rows.filter(validity=Validity.INVALID).count()
    shown = rows if invalid else rows.exclude(validity=Validity.INVALID)
    trials, following = page_of(shown, after=cursor, limit=limit)
    return TrialPage(
        trials=[trial_summary_out(trial) for trial in trials],
        next=following,
        invalid_left_out=left_out,
    )


def _start(request: CallerRequest, wanted: plans.RunRequest, key: str | None) -> tuple[UUID, bool]:
    member = request.auth.member
    if key is None:
        run = services.create_run(member=member, request=wanted, trigger=Trigger.API)
        wake_engine()
        return run.pk, True
    # A repeat must not need the repository again: it may be what made the client try twice.
    known = services.run_of_key(member=member, request=wanted, key=key)
    if known is not None:
        return known.pk, False
    run, is_new = services.create_run_once(
        member=member, request=wanted, key=key, token=request.auth.token
    )
    wake_engine()
    return run.pk, is_new


def _run_out(member: Member, run_id: UUID) -> RunOut:
    return run_out(selectors.progress_of(selectors.run_for(member, run_id)))
