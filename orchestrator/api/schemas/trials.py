"""Single trials: results, provenance and stored files."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from ninja import Schema

from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    build_api_url,
    build_case_out,
    build_commit_out,
)
from orchestrator.benchmarks.prepare_steps import After, Each
from orchestrator.loadtools.metrics import Metric, describe_latency_model
from orchestrator.loadtools.model import Model
from orchestrator.measurements.prepare_steps import read_prepared_steps
from orchestrator.measurements.prices import Cost
from orchestrator.measurements.run_numbers import select_primary_values
from orchestrator.measurements.selectors import ArtifactInfo, LoadSummary, TrialDetails
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity


class TrialSummaryOut(Schema):
    """`validity` is null until the trial was measured, `host` until it was chosen.

    `host` is where the server ran. `reasons` of a suspect or invalid trial are `code: finding and
    advice` (docs/validity.md). `primary` has the values of the metrics that decide the verdict, by
    metric in its unit; metrics that were not measured are omitted.
    """

    id: UUID
    run: UUID
    job: UUID
    host: str | None
    case: CaseOut
    commit: CommitOut
    round: int
    state: TrialState
    validity: Validity | None
    reasons: list[Any]
    primary: dict[str, float]
    message: str
    attempt: int | None
    started_at: datetime | None
    ended_at: datetime | None
    url: str


class TrialPage(Schema):
    """`invalid_excluded` trials of the run are invalid and not listed."""

    trials: list[TrialSummaryOut]
    next: str | None
    invalid_excluded: int


class MeasurementOut(Schema):
    """Always show `label` next to a latency; it is null for other metrics."""

    metric: str
    title: str
    unit: str
    value: float
    label: str | None


class LoadOut(Schema):
    """One step or probe of a trial with several loads. `rate` was offered; null for a closed loop.

    `passed`: whether the objective of a search was met; `reason`: why not; null for steps.
    `readings` are by metric, in its unit; unknown values are omitted.
    """

    number: int
    rate: float | None
    connections: int
    streams: int
    passed: bool | None
    reason: str
    validity: Validity
    reasons: list[str]
    readings: dict[str, float]
    latency_url: str


class CostOut(Schema):
    """The cost of answers. If `value` is null, `reason` states why."""

    metric: str
    title: str
    unit: str
    value: float | None
    reason: str


class PrepareStepOut(Schema):
    """A prepare step that the trial needed. `step`: its number in the definition, from 1.

    `runs`: how often the trial ran it; 0 if an earlier trial did. `seconds`: of its last run.
    """

    step: int
    run: str
    each: Each
    after: After
    seconds: float
    runs: int


class ArtifactOut(Schema):
    name: str
    size: int
    sha256: str
    url: str


class TrialOut(TrialSummaryOut):
    """A trial with its provenance: the exact command, the tool, the times, the limits that applied,
    the checks before and after the load, and the protocol.

    `hosts` has the host of each role after the trial was measured. `removed` describes the data
    that retention removed.
    """

    hosts: dict[str, str]

    measurements: list[MeasurementOut]
    loads: list[LoadOut]
    costs: list[CostOut]
    prepare: list[PrepareStepOut]
    provenance: dict[str, Any]
    artifacts: list[ArtifactOut]
    removed: list[str]


def build_trial_summary_out(trial: Trial, primary: Mapping[str, float]) -> TrialSummaryOut:
    host = trial.host or trial.job.host
    return TrialSummaryOut(
        id=trial.pk,
        run=trial.job.run_id,
        job=trial.job_id,
        host=host.name if host else None,
        case=build_case_out(trial.case),
        commit=build_commit_out(trial.variant.commit),
        round=trial.round,
        state=TrialState(trial.state),
        validity=Validity(trial.validity) if trial.validity else None,
        reasons=trial.reasons,
        primary=dict(primary),
        message=trial.message,
        attempt=trial.attempt,
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        url=build_api_url(f"trials/{trial.pk}"),
    )


def build_trial_out(details: TrialDetails, costs: Sequence[Cost]) -> TrialOut:
    trial = details.trial
    primary = select_primary_values(trial, details.values)
    return TrialOut(
        **build_trial_summary_out(trial, primary).model_dump(),
        hosts=trial.provenance.get("hosts") or {},
        measurements=[
            _build_measurement_out(info, value, details.model)
            for info, value in details.measurements
        ],
        loads=[_build_load_out(details.trial, load) for load in details.loads],
        costs=[
            CostOut(
                metric=cost.metric.key,
                title=cost.metric.title,
                unit=cost.metric.unit,
                value=cost.value,
                reason=cost.reason,
            )
            for cost in costs
        ],
        prepare=[
            PrepareStepOut(**step.model_dump())
            for step in read_prepared_steps(trial.provenance.get("prepare"))
        ],
        provenance=details.trial.provenance,
        artifacts=[_build_artifact_out(details.trial, artifact) for artifact in details.artifacts],
        removed=[each.summary for each in details.removed.values()],
    )


def _build_measurement_out(info: Metric, value: float, model: Model | None) -> MeasurementOut:
    label = describe_latency_model(info.key, model) if model else None
    return MeasurementOut(
        metric=info.key, title=info.title, unit=info.unit, value=value, label=label
    )


def _build_load_out(trial: Trial, load: LoadSummary) -> LoadOut:
    return LoadOut(
        number=load.number,
        rate=load.rate,
        connections=load.connections,
        streams=load.streams,
        passed=load.passed,
        reason=load.reason,
        validity=Validity(load.validity),
        reasons=list(load.reasons),
        readings=dict(load.readings),
        latency_url=build_api_url(
            f"trials/{trial.pk}/latency?load={load.number}&percentiles=50,99"
        ),
    )


def _build_artifact_out(trial: Trial, artifact: ArtifactInfo) -> ArtifactOut:
    return ArtifactOut(
        name=artifact.name,
        size=artifact.size,
        sha256=artifact.sha256,
        url=build_api_url(f"trials/{trial.pk}/artifacts/{quote(artifact.name)}"),
    )
