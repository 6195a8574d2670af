"""Starts, progress and cancellation of runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from django.http import HttpResponse
from ninja import Header, Query, Router
from ninja.responses import NinjaJSONEncoder, Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.long_poll import build_parked_response, must_wait
from orchestrator.api.once import Key
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.plans import PlanOut, build_plan_out
from orchestrator.api.schemas.runs import (
    RunIn,
    RunOut,
    RunPage,
    build_run_out,
    build_run_summary_out,
)
from orchestrator.api.schemas.trials import TrialPage, build_trial_summary_out
from orchestrator.benchmarks.refs import resolve_as_fetched
from orchestrator.benchmarks.selectors import load_case
from orchestrator.calibration.resolution import with_rounds
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.dispatch.wakeups import wake_engine, wake_jobs
from orchestrator.measurements.run_numbers import load_primary_values
from orchestrator.runs import cancelling, plans, selectors, services
from orchestrator.runs.quiet_wait import end_quiet_waits
from orchestrator.runs.rerun import request_again
from orchestrator.runs.states import RUN_ENDED, RunState, TrialState, Validity
from orchestrator.runs.version_keys import read_run_version

router = Router(tags=["runs"])


@router.post("/runs", response={200: RunOut, 201: RunOut}, summary="Start a run")
def start_run(
    request: CallerRequest,
    response: HttpResponse,
    payload: RunIn,
    idempotency_key: Annotated[
        Key | None,
        Header(
            alias="Idempotency-Key",
            description="With the same key, repeated requests start only one run.",
        ),
    ] = None,
) -> Status[RunOut]:
    """201 for a new run, 200 for the run that the same idempotency key started earlier."""
    with _name_contender_as_sent(payload):
        progress, is_new = _start(request, payload, idempotency_key)
    answer = build_run_out(progress)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED if is_new else HTTPStatus.OK, answer)


@router.post("/runs/plan", response=PlanOut, summary="Estimate a run")
def plan_run(request: CallerRequest, payload: RunIn) -> PlanOut:
    """The chosen cases and the expected time of a request to start a run; nothing is started."""
    member = request.auth.member
    # Nothing starts, so names resolve as of the last fetch.
    with resolve_as_fetched(), _name_contender_as_sent(payload):
        return build_plan_out(
            plans.plan_run(member=member, request=_build_run_request(member, payload))
        )


@router.get("/runs", response=RunPage, summary="List runs, newest first")
def list_runs(
    request: CallerRequest,
    state: RunState | None = None,
    benchmark: Text | None = None,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RunPage:
    rows = selectors.load_runs(request.auth.member)
    if state:
        rows = rows.filter(state=state)
    if benchmark:
        rows = rows.filter(definition__benchmark__slug=benchmark)
    if project:
        rows = rows.filter(definition__benchmark__project__slug=project)
    runs, following = cut_page(rows, after=cursor, limit=limit)
    return RunPage(runs=[build_run_summary_out(run) for run in runs], next=following)


@router.get("/runs/{uuid:run_id}", response=RunOut, summary="Show a run")
def show_run(
    request: CallerRequest,
    run_id: UUID,
    wait: Annotated[
        float, Query(ge=0, le=60, description="Seconds to wait for a change of the run's state.")
    ] = 0,
) -> HttpResponse:
    """With `wait`, the answer comes as soon as the state changes, immediately for an ended run. If
    too many requests wait already, it comes immediately with a Retry-After."""
    member = request.auth.member
    headers: dict[str, str] = {}
    if wait and must_wait(
        request,
        headers,
        topic=str(run_id),
        look=lambda: selectors.run_state_for(member, run_id),
        wait_s=wait,
        ended=RUN_ENDED,
    ):
        return build_parked_response()
    key = ("api-run", member.sight, run_id)
    text = get_or_make_part(
        key,
        read_run_version(member, run_id),
        lambda: _render_answer(_build_run_out(member, run_id)),
    )
    return HttpResponse(text, content_type="application/json", headers=headers)


@router.post("/runs/{uuid:run_id}/cancel", response=RunOut, summary="Cancel a run")
def cancel_run(request: CallerRequest, run_id: UUID) -> RunOut:
    """Queued jobs end now, active ones within seconds; existing results remain."""
    cancelling.cancel_run(member=request.auth.member, run_id=run_id)
    wake_jobs(run_id)
    return _build_run_out(request.auth.member, run_id)


@router.post(
    "/runs/{uuid:run_id}/jobs/{uuid:job_id}/cancel", response=RunOut, summary="Cancel a job"
)
def cancel_job(request: CallerRequest, run_id: UUID, job_id: UUID) -> RunOut:
    """The other cases continue; existing results remain."""
    cancelling.cancel_job(member=request.auth.member, run_id=run_id, job_id=job_id)
    wake_jobs(run_id)
    return _build_run_out(request.auth.member, run_id)


@router.post(
    "/runs/{uuid:run_id}/cases/{case}/cancel", response=RunOut, summary="Cancel a case of a run"
)
def cancel_case(request: CallerRequest, run_id: UUID, case: Text) -> RunOut:
    """On all hosts; existing results remain. `case` is its key."""
    member = request.auth.member
    benchmark = selectors.load_run(member, run_id).definition.benchmark
    cancelling.cancel_case(member=member, run_id=run_id, case_id=load_case(benchmark, case).pk)
    wake_jobs(run_id)
    return _build_run_out(member, run_id)


@router.post(
    "/runs/{uuid:run_id}/measure-now",
    response=RunOut,
    summary="Measure without waiting for quiet hosts",
)
def measure_now(request: CallerRequest, run_id: UUID) -> RunOut:
    """Trials start although other processes use a host; they may be suspect or invalid."""
    end_quiet_waits(member=request.auth.member, run_id=run_id)
    wake_jobs(run_id)
    wake_engine()
    return _build_run_out(request.auth.member, run_id)


@router.post("/runs/{uuid:run_id}/rerun", response={201: RunOut}, summary="Rerun")
def run_again(request: CallerRequest, response: HttpResponse, run_id: UUID) -> Status[RunOut]:
    """Starts a run of the same commits, cases and hosts, with a new seed."""
    member = request.auth.member
    wanted = request_again(selectors.load_run(member, run_id))
    progress = services.start_run(member=member, request=wanted)
    wake_engine()
    answer = build_run_out(progress)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get("/runs/{uuid:run_id}/trials", response=TrialPage, summary="List the trials of a run")
def list_trials(
    request: CallerRequest,
    run_id: UUID,
    invalid: Annotated[bool, Query(description="Include invalid trials.")] = False,
    state: Annotated[TrialState | None, Query(description="Only trials in this state.")] = None,
    validity: Annotated[
        Validity | None, Query(description="Only trials of this validity; `invalid` as well.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> TrialPage:
    """Invalid trials are counted, but not listed by default."""
    run = selectors.load_run(request.auth.member, run_id)
    rows = selectors.load_trials(run)
    if state:
        rows = rows.filter(state=state)
    if validity:
        rows = rows.filter(validity=validity)
    listed = invalid or validity == Validity.INVALID
    excluded = 0 if listed else rows.filter(validity=Validity.INVALID).count()
    shown = rows if listed else rows.exclude(validity=Validity.INVALID)
    trials, following = cut_page(shown, after=cursor, limit=limit)
    _, values = load_primary_values(run, {trial.pk: trial.case_id for trial in trials})
    return TrialPage(
        trials=[build_trial_summary_out(trial, values.get(trial.pk, {})) for trial in trials],
        next=following,
        invalid_excluded=excluded,
    )


def _start(
    request: CallerRequest, payload: RunIn, key: str | None
) -> tuple[selectors.RunProgress, bool]:
    member = request.auth.member
    if key is None:
        progress = services.start_run(member=member, request=_build_run_request(member, payload))
        wake_engine()
        return progress, True
    client_request = f"{payload.build_request()} {payload.resolution}"
    # A repeat must not need the repository: its failure may be the cause of the repeat.
    known = services.find_run_by_key(member=member, client_request=client_request, key=key)
    if known is not None:
        return _load_run_progress(member, known.pk), False
    result = services.start_run_once(
        member=member,
        request=_build_run_request(member, payload),
        key=key,
        token=request.auth.token,
        client_request=client_request,
    )
    wake_engine()
    return result


@contextmanager
def _name_contender_as_sent(payload: RunIn) -> Iterator[None]:
    """Name the field that the client sent in an error of the contenders."""
    try:
        yield
    except InvalidRequestError as error:
        if error.field == "contenders":
            error.field = payload.contender_field
        raise


def _build_run_request(member: Member, payload: RunIn) -> plans.RunRequest:
    """Return the request with the rounds that its `resolution` needs, if it has one."""
    request = payload.build_request()
    if payload.resolution is None:
        return request
    return with_rounds(member=member, request=request, change=payload.resolution)


def _build_run_out(member: Member, run_id: UUID) -> RunOut:
    return build_run_out(_load_run_progress(member, run_id))


def _load_run_progress(member: Member, run_id: UUID) -> selectors.RunProgress:
    return selectors.load_progress(selectors.run_alone_for(member, run_id))


def _render_answer(answer: RunOut) -> bytes:
    return json.dumps(answer.model_dump(), cls=NinjaJSONEncoder).encode()
