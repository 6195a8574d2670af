"""Reads of the details of single trials."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.selectors import load_stored_spec
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.loadtools.model import LoadSpec, Model
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.removals import check_kept, load_run_removals
from orchestrator.results.models import Artifact, LoadResult, Removal, RemovalKind
from orchestrator.runs.models import Trial
from orchestrator.runs.selectors import load_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactInfo:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """One of several measured loads; values that it did not measure are None.

    `rate` is the offered rate, None for a closed loop; `passed` is None for a step.
    """

    number: int
    rate: float | None
    connections: int
    streams: int
    achieved: float | None
    p50_s: float | None
    p99_s: float | None
    errors: float | None
    success: float | None
    cpu_s_per_1k: float | None
    passed: bool | None
    reason: str
    validity: str
    reasons: tuple[str, ...]
    readings: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDetails:
    """A trial with its measurements, in the order of the metric registry.

    `loads` are its steps or the probes of its search; empty for a single load. `requested` are the
    loads of its definition, None if no tool knows them any more. `removed`: the data that retention
    removed.
    """

    trial: Trial
    measurements: tuple[tuple[Metric, float], ...]
    artifacts: tuple[ArtifactInfo, ...]
    loads: tuple[LoadSummary, ...]
    requested: tuple[LoadSpec, ...] | None
    removed: Mapping[str, Removal]

    @property
    def values(self) -> dict[str, float]:
        return {metric.key: value for metric, value in self.measurements}

    @property
    def model(self) -> Model | None:
        """Return the load model: open if any load is open; None if unknown."""
        return get_load_model(self.requested)


def load_trial_details(trial: Trial) -> TrialDetails:
    values = load_values([trial.pk]).get(trial.pk, {})
    known = [(info, values[info.key]) for info in find_metrics(values)]
    files = trial.artifacts.values_list("name", "size", "sha256").order_by("name")
    return TrialDetails(
        trial=trial,
        measurements=tuple(known),
        artifacts=tuple(ArtifactInfo(name=n, size=s, sha256=h) for n, s, h in files),
        loads=tuple(_build_summary(each) for each in trial.load_results.all()),
        requested=load_requested_loads(trial),
        removed=load_run_removals(trial.job.run_id),
    )


def load_requested_loads(trial: Trial) -> tuple[LoadSpec, ...] | None:
    """Return the loads of a trial as its definition specifies them, or None as above."""
    definition = trial.job.run.definition
    return load_case_loads(definition.pk, definition.digest, trial.case.parameters)


def load_case_loads(
    definition: UUID, digest: str, parameters: Mapping[str, Any]
) -> tuple[LoadSpec, ...] | None:
    """Return the loads of a case as the definition specifies them, or None as above."""
    try:
        resolved = load_stored_spec(definition, digest).resolve(parameters)
        return build_load_specs(resolved, parameters)
    except (InvalidRequestError, KeyError):
        return None


def get_load_model(loads: tuple[LoadSpec, ...] | None) -> Model | None:
    if loads is None:
        return None
    return "open" if any(load.model == "open" for load in loads) else "closed"


def _build_summary(load: LoadResult) -> LoadSummary:
    readings = load.readings
    return LoadSummary(
        number=load.number,
        rate=load.rate,
        connections=load.connections,
        streams=load.streams,
        achieved=readings.get("requests.rate"),
        p50_s=readings.get("latency.p50"),
        p99_s=readings.get("latency.p99"),
        errors=readings.get("requests.errors"),
        success=readings.get("success.ratio"),
        cpu_s_per_1k=readings.get("cpu.seconds_per_1k"),
        passed=load.passed,
        reason=load.reason,
        validity=load.validity,
        reasons=tuple(load.reasons),
        readings=readings,
    )


def load_artifact(member: Member, trial_id: UUID, name: str) -> bytes:
    """Return the bytes of a file of a trial, as the tool wrote it."""
    trial = load_trial(member, trial_id)
    artifact = Artifact.objects.filter(trial=trial, name=name).first()
    if artifact is None:
        check_kept(trial.job.run_id, RemovalKind.FILES)
        raise NotFoundError(f"this trial has no file {name}")
    return zlib.decompress(artifact.compressed)
