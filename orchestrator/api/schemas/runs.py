"""Runs: what a client asks for, and how far it is."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CommitOut, Text, api_url, commit_out, web_url
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.selectors import JobProgress, RunProgress
from orchestrator.runs.services import RunRequest
from orchestrator.runs.states import JobState, RunState


class RunIn(Schema, extra="forbid"):
    """Branches, tags or hashes of a benchmark's repository, and the hosts to measure them on."""

    benchmark: Text
    project: Text | None = Field(
        None, description="Needed only where two projects have a benchmark of this name."
    )
    baseline: Text
    contenders: Annotated[list[Text], Field(max_length=50)] = []
    contender: Text | None = Field(None, description="The same as a list of one contender.")
    hosts: Annotated[list[Text], Field(max_length=100)]
    rounds: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Left out: as many as the benchmark's definition says."
    )

    def request(self) -> RunRequest:
        one = [self.contender] if self.contender else []
        return RunRequest(
            benchmark=self.benchmark,
            project=self.project,
            baseline=self.baseline,
            contenders=(*one, *self.contenders),
            hosts=tuple(self.hosts),
            rounds=self.rounds,
        )


class CurrentTrialOut(Schema):
    id: UUID
    case: str
    commit: str
    round: int


class JobOut(Schema):
    """A run's work on one host."""

    id: UUID
    host: str
    state: JobState
    phase: str
    message: str
    attempt: int
    trials_total: int
    trials_done: int
    trials_failed: int
    current_trial: CurrentTrialOut | None


class RunSummaryOut(Schema):
    id: UUID
    state: RunState
    message: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    benchmark: str
    project: str
    definition_version: int
    rounds: int
    seed: int
    baseline: CommitOut
    contenders: list[CommitOut]
    url: str
    web_url: str


class RunOut(RunSummaryOut):
    """A run and how far it is; `seconds_left` is an estimate, and null once it has ended."""

    phase: str
    trials_total: int
    trials_done: int
    seconds_left: float | None
    jobs: list[JobOut]


class RunPage(Schema):
    runs: list[RunSummaryOut]
    next: str | None


def run_summary_out(run: Run) -> RunSummaryOut:
    baseline, *contenders = [commit_out(variant.commit) for variant in run.variants.all()]
    benchmark = run.definition.benchmark
    return RunSummaryOut(
        id=run.pk,
        state=RunState(run.state),
        message=run.message,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        definition_version=run.definition.version,
        rounds=run.rounds,
        seed=run.seed,
        baseline=baseline,
        contenders=contenders,
        url=api_url(f"runs/{run.pk}"),
        web_url=web_url("run", run.pk),
    )


def run_out(progress: RunProgress) -> RunOut:
    return RunOut(
        **run_summary_out(progress.run).model_dump(),
        phase=progress.phase,
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        seconds_left=progress.seconds_left,
        jobs=[_job_out(job) for job in progress.jobs],
    )


def _job_out(progress: JobProgress) -> JobOut:
    job = progress.job
    return JobOut(
        id=job.pk,
        host=job.host.name,
        state=JobState(job.state),
        phase=job.phase,
        message=job.message,
        attempt=job.attempt,
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        trials_failed=progress.trials_failed,
        current_trial=_current_trial_out(progress.current),
    )


def _current_trial_out(trial: Trial | None) -> CurrentTrialOut | None:
    if trial is None:
        return None
    return CurrentTrialOut(
        id=trial.pk,
        case=trial.case.label,
        commit=trial.variant.commit.short_sha,
        round=trial.round,
    )
