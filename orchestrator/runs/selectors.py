"""Reads of runs, their progress, and schedules."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum

from orchestrator.accounts.members import Member
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job, Run, Schedule, Trial
from orchestrator.runs.states import JOB_ENDED, RUN_ENDED, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far one job is; `seconds_left` is None once it has ended."""

    job: Job
    trials_total: int
    trials_done: int
    trials_failed: int
    trials_unsupported: int
    seconds_left: float | None
    current: Trial | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is. Its hosts work side by side, so the one with most to do counts."""

    run: Run
    jobs: tuple[JobProgress, ...]
    trials_total: int
    trials_done: int
    seconds_left: float | None
    phase: str


def runs_of(member: Member) -> QuerySet[Run]:
    return (
        Run.objects.filter(team=member.team)
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


def run_for(member: Member, run_id: UUID) -> Run:
    run = runs_of(member).filter(pk=run_id).first()
    if run is None:
        raise NotFoundError("there is no such run in this team")
    return run


def run_state_for(member: Member, run_id: UUID) -> str:
    """The run's state and nothing else, for those who ask often."""
    state = Run.objects.filter(team=member.team, pk=run_id).values_list("state", flat=True).first()
    if state is None:
        raise NotFoundError("there is no such run in this team")
    return state


def trial_for(member: Member, trial_id: UUID) -> Trial:
    trial = (
        Trial.objects.select_related(
            "job__run__definition", "job__host", "host", "variant__commit", "case"
        )
        .filter(pk=trial_id, job__run__team=member.team)
        .first()
    )
    if trial is None:
        raise NotFoundError("there is no such trial in this team")
    return trial


def trials_of(run: Run) -> QuerySet[Trial]:
    return Trial.objects.filter(job__run=run).select_related(
        "case", "variant__commit", "job__host", "host"
    )


def progress_of(run: Run) -> RunProgress:
    """The progress of a run, in three queries whatever its size."""
    planned = Q(trials__state=TrialState.PLANNED)
    jobs = list(
        run.jobs.select_related("host")
        .annotate(
            total=Count("trials"),
            left=Count("trials", filter=planned),
            failed=Count("trials", filter=Q(trials__state=TrialState.FAILED)),
            unsupported=Count("trials", filter=Q(trials__state=TrialState.UNSUPPORTED)),
            left_s=Sum("trials__expected_s", filter=planned),
        )
        .order_by("created_at", "pk")
    )
    current = Trial.objects.select_related("case", "variant__commit").in_bulk(
        [job.current_trial for job in jobs if job.current_trial]
    )
    parts = tuple(_job_progress(job, current.get(job.current_trial)) for job in jobs)
    active = [part.job.phase for part in parts if part.job.state not in JOB_ENDED]
    return RunProgress(
        run=run,
        jobs=parts,
        trials_total=sum(part.trials_total for part in parts),
        trials_done=sum(part.trials_done for part in parts),
        seconds_left=None if run.state in RUN_ENDED else _longest_s(parts),
        phase=next((phase for phase in active if phase), run.state),
    )


def _longest_s(parts: Iterable[JobProgress]) -> float | None:
    """Jobs of one host follow each other; of those that have none yet, each may get its own."""
    left: dict[UUID, float] = defaultdict(float)
    for part in parts:
        if part.seconds_left is not None:
            left[part.job.host_id or part.job.pk] += part.seconds_left
    return max(left.values(), default=None)


def schedules_of(member: Member) -> QuerySet[Schedule]:
    return (
        Schedule.objects.filter(team=member.team)
        .select_related("benchmark__project")
        .prefetch_related("hosts")
    )


def schedule_for(member: Member, schedule_id: UUID) -> Schedule:
    schedule = schedules_of(member).filter(pk=schedule_id).first()
    if schedule is None:
        raise NotFoundError("there is no such schedule in this team")
    return schedule


def _job_progress(job: Job, current: Trial | None) -> JobProgress:
    total, left = job.total, job.left  # type: ignore[attr-defined]
    return JobProgress(
        job=job,
        trials_total=total,
        trials_done=total - left,
        trials_failed=job.failed,  # type: ignore[attr-defined]
        trials_unsupported=job.unsupported,  # type: ignore[attr-defined]
        seconds_left=None if job.state in JOB_ENDED else _left_s(job, current),
        current=current,
    )


def _left_s(job: Job, current: Trial | None) -> float:
    left = float(job.left_s or 0.0)  # type: ignore[attr-defined]
    if current is None or current.started_at is None or current.state != TrialState.PLANNED:
        return left
    spent = (utc_now() - current.started_at).total_seconds()
    return left - min(max(spent, 0.0), current.expected_s)


def jobs_on(host: Host) -> QuerySet[Job]:
    """What ran on a host, newest first; get the host through `host_for`."""
    return (
        Job.objects.filter(Q(host=host) | Q(placements__host=host))
        .distinct()
        .select_related("run__definition__benchmark__project")
        .order_by("-created_at")
    )
