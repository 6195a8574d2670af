"""Single trials: what was measured, how, and the files that are kept of it."""

from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, CommitOut, api_url, case_out, commit_out
from orchestrator.results.selectors import ArtifactInfo, TrialDetails
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity


class TrialSummaryOut(Schema):
    """`validity` is null until the trial was measured, `host` until it was chosen.

    `host` is where the server ran.
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
    message: str
    attempt: int | None
    started_at: datetime | None
    ended_at: datetime | None
    url: str


class TrialPage(Schema):
    trials: list[TrialSummaryOut]
    next: str | None


class MeasurementOut(Schema):
    metric: str
    title: str
    unit: str
    value: float


class ArtifactOut(Schema):
    name: str
    size: int
    sha256: str
    url: str


class TrialOut(TrialSummaryOut):
    """A trial with its provenance: the exact command, the tool, the times, the limits that held.

    `hosts` has the host of each role, once the trial was measured.
    """

    hosts: dict[str, str]

    measurements: list[MeasurementOut]
    provenance: dict[str, Any]
    artifacts: list[ArtifactOut]


def trial_summary_out(trial: Trial) -> TrialSummaryOut:
    host = trial.host or trial.job.host
    return TrialSummaryOut(
        id=trial.pk,
        run=trial.job.run_id,
        job=trial.job_id,
        host=host.name if host else None,
        case=case_out(trial.case),
        commit=commit_out(trial.variant.commit),
        round=trial.round,
        state=TrialState(trial.state),
        validity=Validity(trial.validity) if trial.validity else None,
        reasons=trial.reasons,
        message=trial.message,
        attempt=trial.attempt,
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        url=api_url(f"trials/{trial.pk}"),
    )


def trial_out(details: TrialDetails) -> TrialOut:
    return TrialOut(
        **trial_summary_out(details.trial).model_dump(),
        hosts=details.trial.provenance.get("hosts") or {},
        measurements=[
            MeasurementOut(metric=info.key, title=info.title, unit=info.unit, value=value)
            for info, value in details.measurements
        ],
        provenance=details.trial.provenance,
        artifacts=[_artifact_out(details.trial, artifact) for artifact in details.artifacts],
    )


def _artifact_out(trial: Trial, artifact: ArtifactInfo) -> ArtifactOut:
    return ArtifactOut(
        name=artifact.name,
        size=artifact.size,
        sha256=artifact.sha256,
        url=api_url(f"trials/{trial.pk}/artifacts/{quote(artifact.name)}"),
    )
