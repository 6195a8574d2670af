"""Latency distributions and their percentiles."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponse
from ninja import Query, Router, Schema

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.latencies import (
    CaseLatencyOut,
    Kind,
    LoadNumber,
    Percentiles,
    TrialLatencyOut,
    build_case_latency_out,
    build_trial_latency_out,
)
from orchestrator.benchmarks.selectors import load_benchmark, load_case, load_commit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.selectors import load_host_by_name
from orchestrator.measurements.case_latency import CaseLatency, load_case_latency
from orchestrator.measurements.distributions import (
    encode_histogram,
    load_distribution,
    parse_percentiles,
)
from orchestrator.measurements.selectors import get_load_model, load_requested_loads
from orchestrator.results.models import HistogramKind
from orchestrator.runs.models import Trial
from orchestrator.runs.selectors import load_run, load_trial

router = Router(tags=["trials"])

_FILE: dict[str, Any] = {
    "responses": {
        200: {
            "description": "HdrHistogram's V2 compressed encoding, raw; values are microseconds",
            "content": {"application/octet-stream": {}},
        }
    }
}


class CaseQuery(Schema):
    """The trials of one case of one commit on one host."""

    case: Annotated[Text, Query(description="The key of a case of the benchmark.")]
    commit: Annotated[Text, Query(description="Hash, or seven digits of it.")]
    run: Annotated[
        UUID | None, Query(description="Only results of this run, which determines the benchmark.")
    ] = None
    benchmark: Annotated[Text | None, Query(description="Required without a run.")] = None
    project: Text | None = None
    host: Annotated[
        Text | None, Query(description="Required if several hosts measured the case.")
    ] = None
    invalid: Annotated[bool, Query(description="Include invalid trials.")] = False


@router.get(
    "/trials/{uuid:trial_id}/latency",
    response=TrialLatencyOut,
    summary="Read any percentiles of a trial",
)
def show_trial_latency(
    request: CallerRequest,
    trial_id: UUID,
    percentiles: Percentiles,
    kind: Kind = HistogramKind.OK,
    load: LoadNumber = None,
) -> TrialLatencyOut:
    """From the trial's whole distribution, without warm-up. A trial that searched for a capacity
    has none: select one of its loads."""
    trial = load_trial(request.auth.member, trial_id)
    return build_trial_latency_out(
        trial,
        load_distribution(trial, kind=kind, load=load),
        parse_percentiles(percentiles),
        kind=kind,
        load=load,
        model=get_load_model(load_requested_loads(trial)),
    )


@router.get(
    "/trials/{uuid:trial_id}/histogram",
    summary="Download the latency distribution of a trial",
    openapi_extra=_FILE,
)
def download_trial_histogram(
    request: CallerRequest, trial_id: UUID, kind: Kind = HistogramKind.OK, load: LoadNumber = None
) -> HttpResponse:
    trial = load_trial(request.auth.member, trial_id)
    return _build_file_response(encode_histogram(load_distribution(trial, kind=kind, load=load)))


@router.get(
    "/latency", response=CaseLatencyOut, summary="Read any percentiles of a case, trials merged"
)
def show_case_latency(
    request: CallerRequest, percentiles: Percentiles, selection: Query[CaseQuery]
) -> CaseLatencyOut:
    """The requests of all trials are merged; percentiles are never averaged. Invalid trials are not
    included by default."""
    latency = _load_latency(request.auth.member, selection)
    newest = Trial.objects.filter(pk__in=latency.trials).select_related(
        "case", "job__run__definition"
    )
    trial = newest.order_by("-pk").first()
    query = selection.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return build_case_latency_out(
        latency,
        parse_percentiles(percentiles),
        {
            name: str(value).lower() if value is True else str(value)
            for name, value in query.items()
        },
        get_load_model(load_requested_loads(trial)) if trial else None,
    )


@router.get(
    "/latency/histogram",
    summary="Download the merged latency distribution of a case",
    openapi_extra=_FILE,
)
def download_case_histogram(request: CallerRequest, selection: Query[CaseQuery]) -> HttpResponse:
    return _build_file_response(
        encode_histogram(_load_latency(request.auth.member, selection).distribution)
    )


def _load_latency(member: Member, selection: CaseQuery) -> CaseLatency:
    run = load_run(member, selection.run) if selection.run else None
    if run is not None:
        benchmark = run.definition.benchmark
    elif selection.benchmark is not None:
        benchmark = load_benchmark(member, selection.benchmark, selection.project)
    else:
        raise InvalidRequestError("name the benchmark, or a run", field="benchmark")
    return load_case_latency(
        member,
        benchmark=benchmark,
        case=load_case(benchmark, selection.case),
        commit=load_commit(member, benchmark, selection.commit),
        run=run,
        host=load_host_by_name(member, selection.host) if selection.host else None,
        invalid=selection.invalid,
    )


def _build_file_response(content: bytes) -> HttpResponse:
    response = HttpResponse(content, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = 'attachment; filename="latency.hdr"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
