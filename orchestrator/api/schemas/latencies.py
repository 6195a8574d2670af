"""Latency distributions, read at the requested percentiles."""

from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from ninja import Query, Schema

from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    Text,
    build_api_url,
    build_case_out,
    build_commit_out,
)
from orchestrator.loadtools.metrics import LATENCY_LABELS
from orchestrator.loadtools.model import Model
from orchestrator.measurements.case_latency import CaseLatency
from orchestrator.measurements.distributions import read_percentiles
from orchestrator.results.models import HistogramKind
from orchestrator.runs.models import Trial
from orchestrator.runs.states import Validity
from orchestrator.stats.histogram import Histogram

Percentiles = Annotated[
    Text, Query(description="Above 0 and below 100, separated by commas, such as `50,99.5`.")
]
Kind = Annotated[
    HistogramKind, Query(description="`ok`: successful responses; `other`: any other status.")
]
LoadNumber = Annotated[
    int | None,
    Query(ge=0, description="One load of a trial that has several, counted from 0."),
]


class PercentileOut(Schema):
    """`seconds` is null if fewer than `needed_requests` requests were answered."""

    percentile: float
    seconds: float | None
    needed_requests: int


class LatencyReadingOut(Schema):
    """Always show `label` next to the latency. It is null if the load model is not known."""

    label: str | None
    requests: int
    percentiles: list[PercentileOut]
    histogram_url: str


class TrialLatencyOut(LatencyReadingOut):
    """`reasons` explain why the trial is `suspect` or `invalid` (docs/validity.md)."""

    trial: UUID
    load: int | None
    kind: HistogramKind
    validity: Validity | None
    reasons: list[str]


class CaseLatencyOut(LatencyReadingOut):
    """`suspect` of `trials` and `merged_before` are suspect; `excluded` more are invalid. Only the
    newest version of the definition is used. `merged_before` counts trials whose distributions were
    merged permanently and then removed (docs/retention.md)."""

    benchmark: str
    project: str
    case: CaseOut
    commit: CommitOut
    host: str
    definition_version: int
    trials: list[UUID]
    merged_before: int
    suspect: int
    excluded: int


def build_trial_latency_out(
    trial: Trial,
    distribution: Histogram | None,
    percentiles: tuple[float, ...],
    *,
    kind: HistogramKind,
    load: int | None,
    model: Model | None,
) -> TrialLatencyOut:
    query = {"kind": kind.value} | ({} if load is None else {"load": str(load)})
    return TrialLatencyOut(
        trial=trial.pk,
        load=load,
        kind=kind,
        validity=Validity(trial.validity) if trial.validity else None,
        reasons=[str(each) for each in trial.reasons],
        label=LATENCY_LABELS[model] if model else None,
        requests=distribution.total_count if distribution else 0,
        percentiles=_build_percentiles_out(distribution, percentiles),
        histogram_url=f"{build_api_url(f'trials/{trial.pk}/histogram')}?{urlencode(query)}",
    )


def build_case_latency_out(
    latency: CaseLatency, percentiles: tuple[float, ...], query: dict[str, str], model: Model | None
) -> CaseLatencyOut:
    """`query` names the same trials in the address of the histogram."""
    benchmark = latency.definition.benchmark
    return CaseLatencyOut(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        case=build_case_out(latency.case),
        commit=build_commit_out(latency.commit),
        host=latency.host.name,
        definition_version=latency.definition.version,
        trials=list(latency.trials),
        merged_before=latency.merged_before,
        suspect=latency.suspect,
        excluded=latency.excluded,
        label=LATENCY_LABELS[model] if model else None,
        requests=latency.distribution.total_count if latency.distribution else 0,
        percentiles=_build_percentiles_out(latency.distribution, percentiles),
        histogram_url=f"{build_api_url('latency/histogram')}?{urlencode(query)}",
    )


def _build_percentiles_out(
    distribution: Histogram | None, percentiles: tuple[float, ...]
) -> list[PercentileOut]:
    return [
        PercentileOut(percentile=each.percentile, seconds=each.seconds, needed_requests=each.needed)
        for each in read_percentiles(distribution, percentiles)
    ]
