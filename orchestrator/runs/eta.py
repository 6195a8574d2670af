"""Estimates of when a new run starts and ends, from the work queued for its hosts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, Sum

from orchestrator.accounts.models import Team
from orchestrator.fleet.models import HELD, Host, HostState
from orchestrator.runs.models import HostLease, Placement, Run
from orchestrator.runs.placements import PlacementChoice
from orchestrator.runs.plans import RunPlan
from orchestrator.runs.selectors import RunProgress
from orchestrator.runs.states import JOB_ACTIVE, JOB_ENDED, JobState, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The job on a host and its run; `left_s` is an upper limit."""

    run: Run
    left_s: float


@dataclass(slots=True)
class QueuedWork:
    jobs: int = 0
    seconds: float = 0.0


#: Nobody knows when a host in one of these states does the next job.
ABSENT = HELD | {HostState.UNREACHABLE}

#: Queued jobs by the request: `host:ID`, `profile:SLUG` or `tag:NAME`.
Waiting = Mapping[str, QueuedWork]


def load_current_work(hosts: Iterable[Host]) -> dict[UUID, Work]:
    """Return the current job of each of these hosts; a host without a job is omitted."""
    planned = Q(job__trials__state=TrialState.PLANNED)
    leases = (
        HostLease.objects.filter(host__in=[host.pk for host in hosts])
        .select_related("job__run__definition__benchmark")
        .annotate(left_s=Sum("job__trials__expected_s", filter=planned))
    )
    return {
        lease.host_id: Work(run=lease.job.run, left_s=float(lease.left_s or 0.0))
        for lease in leases
    }


def load_queued(team: Team, *, priority: int | None = None, before: Run | None = None) -> Waiting:
    """Return the placements of the team's queued jobs.

    With `priority` those that go before a new run; with `before` those that go before this run.
    """
    queued = Placement.objects.filter(job__run__team=team, job__state=JobState.QUEUED)
    if priority is not None:
        queued = queued.filter(job__run__priority__gte=priority)
    if before is not None:
        older = Q(job__run__priority=before.priority, job__run__created_at__lt=before.created_at)
        queued = queued.filter(older | Q(job__run__priority__gt=before.priority))
    rows: Iterable[tuple[UUID | None, str | None, str, float]] = queued.values_list(
        "wanted_host_id", "wanted_profile__slug", "wanted_tag", "job__expected_s"
    )
    waiting: dict[str, QueuedWork] = defaultdict(QueuedWork)
    for host, profile, tag, seconds in rows:
        key = f"host:{host}" if host else f"profile:{profile}" if profile else f"tag:{tag}"
        waiting[key].jobs += 1
        waiting[key].seconds += seconds
    return waiting


def estimate_finish(plan: RunPlan, team: Team, now: datetime) -> datetime:
    """Estimate when a run that is started now would end.

    It waits for the current jobs of its hosts, and for queued jobs of its priority or a higher one.
    The estimate assumes that queued jobs need all their rounds, and that a host opens once and
    stays open.
    """
    hosts = {host.pk: host for host in _iterate_hosts(plan)}
    work = load_current_work(hosts.values())
    waiting = load_queued(team, priority=plan.priority)
    starts = {pk: _estimate_free_at(host, work.get(pk), waiting, now) for pk, host in hosts.items()}
    busy: dict[UUID, float] = defaultdict(float)
    ends = [now]
    for roles in plan.placements:
        # Like the queue: each role gets the host that is free first, and all roles start together.
        taken = [
            min((starts[host.pk] + timedelta(seconds=busy[host.pk]), host.pk) for host in each)
            for one in roles.values()
            if (each := one.candidates)
        ]
        for _, pk in taken:
            busy[pk] += plan.typical_s
        ends.append(max(at for at, _ in taken) + timedelta(seconds=plan.typical_s))
    return max(ends)


def estimate_start_s(progress: RunProgress, now: datetime) -> float | None:
    """Estimate the seconds until the first job of a run starts; 0 once one is active.

    None for an ended run, and if no host accepts its first job now. The estimate is as rough as
    that of `estimate_finish`.
    """
    states = {part.job.state for part in progress.jobs}
    if states <= JOB_ENDED:
        return None
    first = next((part.job for part in progress.jobs if part.job.state == JobState.QUEUED), None)
    if first is None or states & JOB_ACTIVE:
        return 0.0
    placements = Placement.objects.filter(job=first).select_related("job__run")
    candidates = [
        list(each.candidates().exclude(state__in=ABSENT).select_related("profile"))
        for each in placements
    ]
    if not candidates or not all(candidates):
        return None
    hosts = {host.pk: host for each in candidates for host in each}
    work = load_current_work(hosts.values())
    waiting = load_queued(progress.run.team, before=progress.run)
    free = {pk: _estimate_free_at(host, work.get(pk), waiting, now) for pk, host in hosts.items()}
    start = max(min(free[host.pk] for host in each) for each in candidates)
    return (max(start, first.not_before or now) - now).total_seconds()


def _iterate_hosts(plan: RunPlan) -> Iterable[Host]:
    wanted: Iterable[PlacementChoice] = (one for roles in plan.placements for one in roles.values())
    return (host for one in wanted for host in one.candidates)


def _estimate_free_at(host: Host, work: Work | None, waiting: Waiting, now: datetime) -> datetime:
    keys = [f"host:{host.pk}", f"profile:{host.profile.slug}", *(f"tag:{tag}" for tag in host.tags)]
    queued = sum(waiting[key].seconds for key in keys if key in waiting)
    free = now + timedelta(seconds=queued + (work.left_s if work else 0.0))
    return max(free, host.hours.next_open(free, host.timezone))
