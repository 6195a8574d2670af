"""Reads of runs, their progress, schedules, and the queue of jobs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, Prefetch, Q, QuerySet, Sum, prefetch_related_objects

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.runs import budgets
from orchestrator.runs.case_status import CaseStatus, load_case_statuses
from orchestrator.runs.models import Job, Placement, Run, Schedule, Trial, Until, Variant
from orchestrator.runs.states import JOB_ACTIVE, JOB_ENDED, RUN_ENDED, JobState, TrialState

#: The path from a run to its project.
RUNS_PROJECT = "definition__benchmark__project"
_VARIANTS = Prefetch("variants", queryset=Variant.objects.select_related("commit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsLeft:
    """Estimated seconds left; all three are equal for a run with a fixed number of rounds."""

    least: float
    typical: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """The progress of one job; `left` is None once it has ended.

    `case_statuses`: its cases, if the run continues until they are decided.
    """

    job: Job
    trials_total: int
    trials_done: int
    trials_failed: int
    trials_unsupported: int
    trials_not_needed: int
    trials_skipped: int
    left: SecondsLeft | None
    current: Trial | None
    case_statuses: tuple[CaseStatus, ...]

    @property
    def is_active(self) -> bool:
        return self.job.state in JOB_ACTIVE

    @property
    def trials_finished(self) -> int:
        """Return the number of trials that are done and were not skipped."""
        return self.trials_done - self.trials_skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The progress of a run. Its hosts work in parallel, so the one with the most work counts.

    `trials_done` counts all trials that are not planned any more, including those that were not
    needed or skipped because the job failed or was cancelled.
    """

    run: Run
    jobs: tuple[JobProgress, ...]
    trials_total: int
    trials_done: int
    trials_not_needed: int
    trials_skipped: int
    left: SecondsLeft | None
    phase: str

    @property
    def trials_finished(self) -> int:
        """Return the number of trials that are done and were not skipped."""
        return self.trials_done - self.trials_skipped

    @property
    def seconds_left(self) -> float | None:
        """Return an estimate; None once it has ended."""
        return self.left.typical if self.left else None

    @property
    def case_statuses(self) -> list[CaseStatus]:
        """Return the status of all cases, if the run continues until they are decided."""
        return [each for part in self.jobs for each in part.case_statuses]


@dataclass(slots=True)
class _Trials:
    """The trials of one job: counts by state, and the seconds of planned ones."""

    count: Counter[str] = field(default_factory=Counter)
    left_s: float = 0.0


def load_runs(member: Member) -> QuerySet[Run]:
    return (
        Run.objects.filter(member.sees(RUNS_PROJECT, team="team"))
        .select_related(
            "definition__benchmark__project", "definition__commit", "requested_by", "schedule"
        )
        .prefetch_related(
            "variants__commit",
            "jobs__host",
            "jobs__placements__wanted_host",
            "jobs__placements__wanted_profile",
        )
        .order_by("-created_at")
    )


def load_run(member: Member, run_id: UUID) -> Run:
    run = load_runs(member).filter(pk=run_id).first()
    if run is None:
        raise NotFoundError.build_for_team("run")
    return run


def run_alone_for(member: Member, run_id: UUID) -> Run:
    """`load_run` without jobs, for `load_progress`, which reads them."""
    run = (
        Run.objects.filter(member.sees(RUNS_PROJECT, team="team"), pk=run_id)
        .select_related("definition__benchmark__project")
        .defer("definition__source", "definition__spec", "definition__axes")
        .prefetch_related(_VARIANTS)
        .first()
    )
    if run is None:
        raise NotFoundError.build_for_team("run")
    return run


def run_state_for(member: Member, run_id: UUID) -> str:
    """Return only the state of the run, for frequent requests."""
    rows = Run.objects.filter(member.sees(RUNS_PROJECT, team="team"), pk=run_id)
    state = rows.values_list("state", flat=True).first()
    if state is None:
        raise NotFoundError.build_for_team("run")
    return state


def load_trial(member: Member, trial_id: UUID) -> Trial:
    trial = (
        Trial.objects.select_related(
            "job__run__definition", "job__host", "host", "variant__commit", "case"
        )
        .filter(member.sees(f"job__run__{RUNS_PROJECT}", team="job__run__team"), pk=trial_id)
        .first()
    )
    if trial is None:
        raise NotFoundError.build_for_team("trial")
    return trial


def load_trials(run: Run) -> QuerySet[Trial]:
    return Trial.objects.filter(job__run=run).select_related(
        "case", "variant__commit", "job__host", "host"
    )


def load_progress(run: Run) -> RunProgress:
    """Return the progress of a run of any size, with a fixed number of queries."""
    jobs = list(run.jobs.select_related("host").order_by("created_at", "pk"))
    return _assemble_progress(run, jobs, _load_trials_by_job(run))


def build_progress(run: Run, planned: Mapping[Job, int]) -> RunProgress:
    """`load_progress` for a new run, from its jobs and the number of trials of each."""
    prefetch_related_objects([run], _VARIANTS)
    trials = {
        job.pk: _Trials(count=Counter({TrialState.PLANNED: count}), left_s=job.expected_s)
        for job, count in planned.items()
    }
    return _assemble_progress(run, list(planned), trials)


def _assemble_progress(
    run: Run, jobs: Sequence[Job], trials: Mapping[UUID, _Trials]
) -> RunProgress:
    on = [job.current_trial for job in jobs if job.current_trial]
    current = Trial.objects.select_related("case", "variant__commit").in_bulk(on) if on else {}
    case_statuses = _load_statuses_by_job(run, jobs)
    parts = tuple(
        _build_job_progress(
            job, trials[job.pk], current.get(job.current_trial), case_statuses[job.pk]
        )
        for job in jobs
    )
    active = [part.job.phase for part in parts if part.job.state not in JOB_ENDED]
    return RunProgress(
        run=run,
        jobs=parts,
        trials_total=sum(part.trials_total for part in parts),
        trials_done=sum(part.trials_done for part in parts),
        trials_not_needed=sum(part.trials_not_needed for part in parts),
        trials_skipped=sum(part.trials_skipped for part in parts),
        left=None if run.state in RUN_ENDED else _find_longest(run, parts),
        phase=next((phase for phase in active if phase), run.state),
    )


def _load_trials_by_job(run: Run) -> dict[UUID, _Trials]:
    trials: dict[UUID, _Trials] = defaultdict(_Trials)
    rows = Trial.objects.filter(job__run=run).order_by().values_list("job_id", "state")
    for job, state, count, seconds in rows.annotate(Count("pk"), Sum("expected_s")):
        trials[job].count[state] = count
        if state == TrialState.PLANNED:
            trials[job].left_s = seconds
    return trials


def _load_statuses_by_job(run: Run, jobs: Sequence[Job]) -> dict[UUID, list[CaseStatus]]:
    statuses: dict[UUID, list[CaseStatus]] = defaultdict(list)
    if run.until != Until.ROUNDS:
        for each in load_case_statuses(run, jobs):
            statuses[each.job.pk].append(each)
    return statuses


def _find_longest(run: Run, parts: Iterable[JobProgress]) -> SecondsLeft | None:
    """Return the longest time: jobs of a host run in sequence, jobs without host in parallel."""
    by_host: dict[UUID, list[SecondsLeft]] = defaultdict(list)
    for part in parts:
        if part.left is not None:
            by_host[part.job.host_id or part.job.pk].append(part.left)
    if not by_host:
        return None
    budget = budgets.compute_left_s(run)

    def longest(key: Callable[[SecondsLeft], float]) -> float:
        seconds = max(sum(map(key, jobs)) for jobs in by_host.values())
        return seconds if budget is None else min(seconds, budget)

    return SecondsLeft(
        least=longest(lambda left: left.least),
        typical=longest(lambda left: left.typical),
        most=longest(lambda left: left.most),
    )


def load_current_runs(
    member: Member, limit: int, project: Project | None = None
) -> list[tuple[Run, int, int]]:
    """Return the newest runs that have not ended, each with its finished and all trials."""
    # Few runs go on. As a subquery, PostgreSQL would search all runs for them, newest first.
    unended = Job.objects.filter(Q(state=JobState.QUEUED) | Q(state__in=JOB_ACTIVE))
    ids = set(unended.values_list("run_id", flat=True))
    rows = load_runs(member).filter(pk__in=ids)
    runs = list((rows if project is None else rows.filter(**{RUNS_PROJECT: project}))[:limit])
    counts: defaultdict[UUID, Counter[bool]] = defaultdict(Counter)
    states = Trial.objects.filter(job__run__in=runs).order_by().values_list("job__run", "state")
    for run, state, trials in states.annotate(Count("pk")) if runs else ():
        counts[run][state != TrialState.PLANNED] += trials
    return [(run, counts[run.pk][True], counts[run.pk].total()) for run in runs]


def load_schedules(member: Member) -> QuerySet[Schedule]:
    return (
        Schedule.objects.filter(member.sees("benchmark__project", team="team"))
        .select_related("benchmark__project", "created_by")
        .prefetch_related("hosts")
    )


def load_schedule(member: Member, schedule_id: UUID) -> Schedule:
    schedule = load_schedules(member).filter(pk=schedule_id).first()
    if schedule is None:
        raise NotFoundError.build_for_team("schedule")
    return schedule


def _build_job_progress(
    job: Job, trials: _Trials, current: Trial | None, case_statuses: Sequence[CaseStatus]
) -> JobProgress:
    count = trials.count
    return JobProgress(
        job=job,
        trials_total=count.total(),
        trials_done=count.total() - count[TrialState.PLANNED],
        trials_failed=count[TrialState.FAILED],
        trials_unsupported=count[TrialState.UNSUPPORTED],
        trials_not_needed=count[TrialState.NOT_NEEDED],
        trials_skipped=count[TrialState.SKIPPED],
        left=None
        if job.state in JOB_ENDED
        else _estimate_seconds_left(trials.left_s, current, case_statuses),
        current=current,
        case_statuses=tuple(case_statuses),
    )


def _estimate_seconds_left(
    most: float, current: Trial | None, case_statuses: Sequence[CaseStatus]
) -> SecondsLeft:
    """Return the seconds left without the elapsed part of the current trial."""
    begun = _compute_elapsed_s(current)
    if not case_statuses:
        return SecondsLeft(least=most - begun, typical=most - begun, most=most - begun)
    open_ = [each for each in case_statuses if each.left.most]
    least = sum(each.left.least * each.block_s for each in open_)
    typical = sum(each.left.typical * each.block_s for each in open_)
    return SecondsLeft(
        least=max(0.0, min(least, most) - begun),
        typical=max(0.0, min(typical, most) - begun),
        most=max(0.0, most - begun),
    )


def _compute_elapsed_s(current: Trial | None) -> float:
    if current is None or current.started_at is None or current.state != TrialState.PLANNED:
        return 0.0
    spent = (utc_now() - current.started_at).total_seconds()
    return min(max(spent, 0.0), current.expected_s)


def load_jobs(host: Host) -> QuerySet[Job]:
    """Return the jobs on a host, newest first; get the host through `load_host`."""
    return (
        Job.objects.filter(Q(host=host) | Q(placements__host=host))
        .filter(run__definition__benchmark__deleted_at=None)
        .distinct()
        .select_related("run__definition__benchmark__project")
        .order_by("-created_at")
    )


def count_queued_by_host(member: Member, hosts: Sequence[Host]) -> Counter[UUID]:
    """Count the queued jobs of each host; a job for a profile or a tag counts for all its hosts."""
    waiting = Placement.objects.filter(
        job__state=JobState.QUEUED, job__run__team=member.team
    ).values_list("job_id", "wanted_host_id", "wanted_profile_id", "wanted_tag", "avoid")
    pairs = {
        (job_id, host.pk)
        for job_id, wanted_host, profile, tag, avoid in waiting
        for host in hosts
        if host.pk not in avoid
        and (host.pk == wanted_host or host.profile_id == profile or (tag and tag in host.tags))
    }
    return Counter(host_id for _, host_id in pairs)


def sum_queued_seconds(team: Team) -> float:
    """Return the expected machine seconds of a team's queued jobs."""
    jobs = Job.objects.filter(run__team=team, state=JobState.QUEUED)
    return float(jobs.aggregate(total=Sum("expected_s"))["total"] or 0.0)
