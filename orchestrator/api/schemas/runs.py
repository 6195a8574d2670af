"""Runs: requests, progress and results."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self
from uuid import UUID

from ninja import Schema
from pydantic import Field, model_validator

from orchestrator.api.schemas.common import (
    CommitOut,
    Flag,
    Number,
    Text,
    Whole,
    build_api_url,
    build_commit_out,
    build_web_url,
)
from orchestrator.benchmarks.spec import MAX_BUILDS, MAX_ROUNDS
from orchestrator.core.clock import utc_now
from orchestrator.core.storable_text import StorableText
from orchestrator.runs.case_status import CaseStatus
from orchestrator.runs.eta import estimate_start_s
from orchestrator.runs.job_details import JobDetails, load_job_details
from orchestrator.runs.models import Build, Placement, Run, Trial
from orchestrator.runs.pinned_repositories import PinnedCommit, read_pins
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.selectors import JobProgress, RunProgress
from orchestrator.runs.states import BuildState, JobState, RunState
from orchestrator.runs.wait_limits import LEAST_WAIT_LIMIT_S, MOST_WAIT_LIMIT_S
from orchestrator.stats.first_places import MOST_PLACES


class PriorityName(StrEnum):
    """The order of waiting runs; waiting increases each priority except `background`."""

    BACKGROUND = "background"
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class UntilName(StrEnum):
    """When a case needs no more rounds.

    `rounds`: after all rounds. `decided`: as soon as all its primary metrics are decided, or after
    `rounds`. `screened`: the same, but a case without any sign of a change after seven blocks is
    stopped early. `compared` and `ranked` are of contests, at one commit: until each value is
    decided against the baseline, or until the order of the first `places` is.
    """

    ROUNDS = "rounds"
    DECIDED = "decided"
    SCREENED = "screened"
    COMPARED = "compared"
    RANKED = "ranked"


class HostRoleName(StrEnum):
    TARGET = "target"
    GENERATOR = "generator"
    BACKEND = "backend"


class PlacementIn(Schema, extra="forbid"):
    """A host for each role; the target's host plays omitted roles.

    Each is the name of a host, `profile:NAME` for any host of a profile, or `tag:NAME`.
    """

    target: Text
    generator: Text | None = None
    backend: Text | None = None


Expression = Annotated[StorableText, Field(max_length=2000)]
WaitLimit = Annotated[Number, Field(ge=LEAST_WAIT_LIMIT_S, le=MOST_WAIT_LIMIT_S)]


class RunIn(Schema, extra="forbid"):
    """Branches, tags or hashes of a benchmark's repository, and the hosts to measure them on.

    At least one of `hosts` and `placements` is required.
    """

    benchmark: Text
    project: Text | None = Field(
        None, description="Required only if two projects have a benchmark of this name."
    )
    baseline: Text | None = Field(
        None,
        description="Default: the first parent of the first contender. `merge-base:BRANCH`: where "
        "the first contender left the branch (its parent, if the branch has it). "
        "`newest-measured:BRANCH`: the branch's newest other commit that this benchmark has "
        "measured. Without contenders, this commit is measured alone and nothing is compared.",
    )
    contenders: Annotated[list[Text], Field(max_length=50)] = []
    contender: Text | None = Field(None, description="Short for a list of one contender.")
    ref: Text | None = Field(None, description="Synonym of `contender`: branch, tag or hash.")
    hosts: Annotated[list[Text], Field(max_length=100)] = Field(
        [],
        description="Each host has all roles: the name of a host, `profile:NAME` for any host of a "
        "profile, or `tag:NAME`.",
    )
    placements: Annotated[list[PlacementIn], Field(max_length=100)] = Field(
        [], description="For jobs whose roles are distributed over several hosts."
    )
    cases: Expression = Field(
        "",
        description='Selects cases by parameters and labels, for example `protocol == "h3" and '
        'size in ("full", "huge")`; default: all.',
    )
    pairwise: Flag = Field(False, description="Fewer cases, but each pair of values still occurs.")
    priority: PriorityName = PriorityName.NORMAL
    rounds: Annotated[Whole, Field(ge=1, le=MAX_ROUNDS)] | None = Field(
        None,
        description="Default: the number in the definition. Unless `until` is `rounds`, it is "
        "the maximum: 5 to 20, default 20.",
    )
    builds: Annotated[Whole, Field(ge=1, le=MAX_BUILDS)] | None = Field(
        None,
        description="How often each commit is built, to separate the difference between builds "
        "from a change. Two rounds measure each build. 1: once, kept for all runs. Default: the "
        "number in the definition.",
    )
    resolution: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        None,
        description="The change to detect, for example 0.02 for 2 %. It determines the rounds, "
        "from the noise of the hosts. Excludes `rounds` and `until`.",
    )
    until: UntilName = UntilName.ROUNDS
    places: Annotated[Whole, Field(ge=1, le=MOST_PLACES)] | None = Field(
        None, description="Only for `ranked`: how many first places are ordered. Default: 3."
    )
    budget_s: Annotated[Number, Field(gt=0, le=1e9)] | None = Field(
        None,
        description="Machine seconds, of all hosts together, for trials and builds; "
        "trials and builds beyond it are skipped. Default: no limit.",
    )
    wait_for_quiet: Flag = Field(
        True,
        description="While other processes use a host, trials wait, for at most a minute in each "
        "round. False: measure at once.",
    )
    wait_limit_s: WaitLimit | None = Field(
        None,
        description="The most seconds that jobs wait in the queue, for example for a host that is "
        "off. Jobs that still wait then fail. Default: 604800, a week.",
    )

    @model_validator(mode="after")
    def _require_one_ending(self) -> Self:
        if self.resolution is not None and (self.rounds or self.until != UntilName.ROUNDS):
            raise ValueError("resolution: omit rounds and until, which it determines")
        return self

    @property
    def contender_field(self) -> str:
        """The field that names the contender, for errors of `contenders`."""
        sent = (each for each in ("contender", "ref") if getattr(self, each))
        return "contenders" if self.contenders else next(sent, "contenders")

    def build_request(self) -> RunRequest:
        """Return the request, without the rounds that follow from `resolution`."""
        one = [each for each in (self.contender, self.ref) if each]
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
            builds=self.builds,
            until=self.until,
            places=self.places,
            budget_s=self.budget_s,
            wait_for_quiet=self.wait_for_quiet,
            wait_limit_s=self.wait_limit_s,
        )


class PlacementOut(Schema):
    """A role of a job: the requested host, and the chosen host, null before."""

    role: HostRoleName
    host_selector: str
    host: str | None


class BuildOut(Schema):
    """A commit built on a host; `cached`: the host had the build already.

    `label` names its cases if the job builds others in a different way.
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


class CaseState(StrEnum):
    OPEN = "open"
    DECIDED = "decided"
    STOPPED_EARLY = "stopped early"
    UNDECIDED = "undecided"


class CaseStatusOut(Schema):
    """The status of a case that continues until it is decided.

    `blocks`: clean blocks at its newest interim analysis, 0 before the first. `verdict`: that of
    this analysis; null without one and for `ranked`. `more_blocks` and `more_s`: the estimated
    blocks and seconds until a decision; null for decided cases, without an estimate, and if they
    are more than a run may have. `more_blocks_range`: from how many to how many it really needs, in
    at least 80 % of the cases; the second is null if no run has so many.
    """

    case: str
    label: str
    state: CaseState
    text: str
    blocks: int
    verdict: str | None
    more_blocks: int | None
    more_blocks_range: tuple[int, int | None] | None
    more_s: float | None


class JobOut(Schema):
    """The work of a run on one placement.

    `host` plays the target; it is null until it is chosen. `waiting` is the reason why a queued job
    does not start; a retry after a failure of its host waits until `not_before`. `expected_s` is an
    upper limit. `cases`: their status, only for a run that continues until decided.
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
    trials_not_needed: int
    trials_skipped: int
    cases: list[CaseStatusOut]
    current_trial: CurrentTrialOut | None


class PinnedRepositoryOut(Schema):
    """A commit of another project that a run measures with.

    `ref` is the name in the definition or the value of an axis, and `sha` what it named when the
    run was created.
    """

    name: str
    project: str
    ref: str
    sha: str


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
    cases: str = Field(description="The expression that selected the cases; empty: all.")
    pairwise: bool
    rounds: int
    builds: int
    until: UntilName
    places: int | None = Field(description="Only for `ranked`: how many first places are ordered.")
    budget_s: float | None
    wait_for_quiet: bool
    waits_until: datetime = Field(description="Jobs that are still queued then fail.")
    priority: PriorityName
    seed: int
    baseline: CommitOut
    contenders: list[CommitOut]
    repositories: list[PinnedRepositoryOut]
    url: str
    web_url: str


class RunOut(RunSummaryOut):
    """A run and its progress.

    `seconds_left` is an estimate of its own work, with minimum and maximum; null for an ended run.
    `seconds_until_start` is an estimate of the time in the queue: 0 once a job is active, null for
    an ended run and if no host can measure. The run ends after the sum of both. `trials_done`
    includes trials that were not needed, and those that were skipped because a job failed or was
    cancelled.
    """

    phase: str
    trials_total: int
    trials_done: int
    trials_not_needed: int
    trials_skipped: int
    seconds_until_start: float | None
    seconds_left: float | None
    seconds_left_at_least: float | None
    seconds_left_at_most: float | None
    jobs: list[JobOut]


class RunPage(Schema):
    runs: list[RunSummaryOut]
    next: str | None


def build_pinned_repositories_out(pins: Iterable[PinnedCommit]) -> list[PinnedRepositoryOut]:
    return [PinnedRepositoryOut(**pin._asdict()) for pin in pins]


def build_run_summary_out(run: Run) -> RunSummaryOut:
    baseline, *contenders = [build_commit_out(variant.commit) for variant in run.variants.all()]
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
        builds=run.builds,
        until=UntilName(run.until),
        places=run.places,
        budget_s=run.budget_s,
        wait_for_quiet=run.wait_for_quiet,
        waits_until=run.waits_until,
        priority=PriorityName(run.get_priority_display().lower()),
        seed=run.seed,
        baseline=baseline,
        contenders=contenders,
        repositories=build_pinned_repositories_out(read_pins(run.repositories)),
        url=build_api_url(f"runs/{run.pk}"),
        web_url=build_web_url("run", run.pk),
    )


def build_run_out(progress: RunProgress) -> RunOut:
    details = load_job_details([part.job for part in progress.jobs])
    return RunOut(
        **build_run_summary_out(progress.run).model_dump(),
        phase=progress.phase,
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        trials_not_needed=progress.trials_not_needed,
        trials_skipped=progress.trials_skipped,
        seconds_until_start=estimate_start_s(progress, utc_now()),
        seconds_left=progress.seconds_left,
        seconds_left_at_least=progress.left.least if progress.left else None,
        seconds_left_at_most=progress.left.most if progress.left else None,
        jobs=[_build_job_out(part, details[part.job.pk]) for part in progress.jobs],
    )


def _build_job_out(progress: JobProgress, details: JobDetails) -> JobOut:
    job = progress.job
    return JobOut(
        id=job.pk,
        host=job.host.name if job.host else None,
        placements=[_build_placement_out(place) for place in details.placements],
        state=JobState(job.state),
        phase=job.phase,
        message=job.message,
        attempt=job.attempt,
        not_before=job.not_before,
        waiting=details.waiting,
        expected_s=job.expected_s,
        builds=[_build_build_out(build) for build in details.builds],
        trials_total=progress.trials_total,
        trials_done=progress.trials_done,
        trials_failed=progress.trials_failed,
        trials_unsupported=progress.trials_unsupported,
        trials_not_needed=progress.trials_not_needed,
        trials_skipped=progress.trials_skipped,
        cases=[_build_case_status_out(each) for each in progress.case_statuses],
        current_trial=_build_current_trial_out(progress.current),
    )


def _build_case_status_out(status: CaseStatus) -> CaseStatusOut:
    further = status.further
    more = further.in_reach if further else None
    return CaseStatusOut(
        case=status.case.key,
        label=status.case.label,
        state=CaseState(status.state),
        text=status.text,
        blocks=status.analysis.blocks if status.analysis else 0,
        verdict=(status.analysis.verdict or None) if status.analysis else None,
        more_blocks=more,
        more_blocks_range=further.range if further else None,
        more_s=None if more is None else more * status.block_s,
    )


def _build_placement_out(place: Placement) -> PlacementOut:
    return PlacementOut(
        role=HostRoleName(place.role),
        host_selector=place.host_selector,
        host=place.host.name if place.host else None,
    )


def _build_build_out(build: Build) -> BuildOut:
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
        log_url=build_api_url(f"builds/{build.pk}/log"),
    )


def _build_current_trial_out(trial: Trial | None) -> CurrentTrialOut | None:
    if trial is None:
        return None
    return CurrentTrialOut(
        id=trial.pk,
        case=trial.case.label,
        commit=trial.variant.commit.short_sha,
        round=trial.round,
    )
