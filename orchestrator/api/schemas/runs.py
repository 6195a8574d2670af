"""Runs: what a client asks for, and how far it is."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CommitOut, Text, api_url, commit_out, web_url
from orchestrator.runs.job_details import JobDetails, details_of
from orchestrator.runs.models import Build, Placement, Run, Trial
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.selectors import JobProgress, RunProgress
from orchestrator.runs.states import BuildState, JobState, RunState


class PriorityName(StrEnum):
    """Who goes first where several runs wait; waiting raises it."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class HostRoleName(StrEnum):
    TARGET = "target"
    GENERATOR = "generator"
    BACKEND = "backend"


class PlacementIn(Schema, extra="forbid"):
    """A host for each role; those left out are played by the target's host.

    Each is the name of a host, `profile:NAME` for any host of a profile, or `tag:NAME`.
    """

    target: Text
    generator: Text | None = None
    backend: Text | None = None


Expression = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]


class RunIn(Schema, extra="forbid"):
    """Branches, tags or hashes of a benchmark's repository, and the hosts to measure them on.

    Wanted is at least one of `hosts` and `placements`.
    """

    benchmark: Text
    project: Text | None = Field(
        None, description="Needed only where two projects have a benchmark of this name."
    )
    baseline: Text | None = Field(
        None,
        description="Left out: the first parent of the first contender. Without contenders, this "
        "commit is measured alone and nothing is compared.",
    )
    contenders: Annotated[list[Text], Field(max_length=50)] = []
    contender: Text | None = Field(None, description="The same as a list of one contender.")
    hosts: Annotated[list[Text], Field(max_length=100)] = Field(
        [],
        description="Each plays all roles: the name of a host, `profile:NAME` for any host of a "
        "profile, or `tag:NAME`.",
    )
    placements: Annotated[list[PlacementIn], Field(max_length=100)] = Field(
        [], description="Where several hosts play the roles of one job."
    )
    cases: Expression = Field(
        "",
        description='Chooses cases by their parameters and labels, such as `protocol == "h3" and '
        'size in ("full", "huge")`; left out: all.',
    )
    pairwise: bool = Field(
        False, description="Fewer cases, in which each pair of values still occurs."
    )
    priority: PriorityName = PriorityName.NORMAL
    rounds: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Left out: as many as the benchmark's definition says."
    )

    def request(self) -> RunRequest:
        one = [self.contender] if self.contender else []
        return RunRequest(
            benchmark=self.benchmark,
            project=self.project,
            baseline=self.baseline or "",
            contenders=(*one, *self.contenders),
            cases=self.cases,
            pairwise=self.pairwise,
            hosts=tuple(self.hosts),
            placements=tuple(each.model_dump(exclude_none=True) for each in self.placements),
            priority=self.priority,
            rounds=self.rounds,
        )


class PlacementOut(Schema):
    """Who plays a role of a job: what was asked for, and the host that it got, once it has."""

    role: HostRoleName
    wanted: str
    host: str | None


class BuildOut(Schema):
    """A commit built on a host; `cached` where the host had it from before.

    `label` says for which cases, where others of the job are built in another way.
    """

    id: int
    host: str
    commit: str
    label: str
    state: BuildState
    cached: bool
    seconds: float | None
    message: str
    started_at: datetime
    log_url: str


class CurrentTrialOut(Schema):
    id: UUID
    case: str
    commit: str
    round: int


class JobOut(Schema):
    """Some of a run's work on one placement.

    `host` plays the target; it is null until it was chosen. `waiting` says why a queued job does
    not start; one that is tried again after a failure of its host waits until `not_before`.
    """

    id: UUID
    host: str | None
    placements: list[PlacementOut]
    state: JobState
    phase: str
    message: str
    attempt: int
    not_before: datetime | None
    waiting: str
    expected_s: float
    builds: list[BuildOut]
    trials_total: int
    trials_done: int
    trials_failed: int
    trials_unsupported: int
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
    cases: str = Field(description="The expression by which cases were chosen; empty: all.")
    pairwise: bool
    rounds: int
    priority: PriorityName
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
        cases=run.cases,
        pairwise=run.pairwise,
        rounds=run.rounds,
        priority=PriorityName(run.get_priority_display().lower()),
        seed=run.seed,
        baseline=baseline,
        contenders=contenders,
        url=api_url(f"runs/{run.pk}"),
        web_url=web_url("run", run.pk),
    )


def run_out(progress: RunProgress) -> RunOut:
    details = details_of([part.job for part in progress.jobs])
    return RunOut(
        **run_summary_out(progress.run).model_dump(),
        phase=progress.phase,
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        seconds_left=progress.seconds_left,
        jobs=[_job_out(part, details[part.job.pk]) for part in progress.jobs],
    )


def _job_out(progress: JobProgress, details: JobDetails) -> JobOut:
    job = progress.job
    return JobOut(
        id=job.pk,
        host=job.host.name if job.host else None,
        placements=[_placement_out(place) for place in details.placements],
        state=JobState(job.state),
        phase=job.phase,
        message=job.message,
        attempt=job.attempt,
        not_before=job.not_before,
        waiting=details.waiting,
        expected_s=job.expected_s,
        builds=[_build_out(build) for build in details.builds],
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        trials_failed=progress.trials_failed,
        trials_unsupported=progress.trials_unsupported,
        current_trial=_current_trial_out(progress.current),
    )


def _placement_out(place: Placement) -> PlacementOut:
    return PlacementOut(
        role=HostRoleName(place.role),
        wanted=place.wanted,
        host=place.host.name if place.host else None,
    )


def _build_out(build: Build) -> BuildOut:
    return BuildOut(
        id=build.pk,
        host=build.host.name,
        commit=build.commit.sha,
        label=build.label,
        state=BuildState(build.state),
        cached=build.cached,
        seconds=build.seconds,
        message=build.message,
        started_at=build.started_at,
        log_url=api_url(f"builds/{build.pk}/log"),
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
