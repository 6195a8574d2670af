"""Reads of single trials: all that is known of one."""

import zlib
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.core.errors import NotFoundError
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial
from orchestrator.runs.selectors import trial_for


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactInfo:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDetails:
    """A trial with its measurements, in the order of the metric registry."""

    trial: Trial
    measurements: tuple[tuple[Metric, float], ...]
    artifacts: tuple[ArtifactInfo, ...]


def trial_details(trial: Trial) -> TrialDetails:
    values = dict(trial.measurements.values_list("metric__key", "value"))
    known = [(info, values[info.key]) for info in metrics_of(values)]
    files = trial.artifacts.values_list("name", "size", "sha256").order_by("name")
    return TrialDetails(
        trial=trial,
        measurements=tuple(known),
        artifacts=tuple(ArtifactInfo(name=n, size=s, sha256=h) for n, s, h in files),
    )


def artifact_content(member: Member, trial_id: UUID, name: str) -> bytes:
    """The bytes of a file that a trial left behind, as the tool wrote it."""
    trial = trial_for(member, trial_id)
    artifact = Artifact.objects.filter(trial=trial, name=name).first()
    if artifact is None:
        raise NotFoundError(f"this trial has no file {name}")
    return zlib.decompress(artifact.compressed)
