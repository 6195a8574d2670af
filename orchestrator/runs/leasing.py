"""Leases: free hosts for queued jobs; a job gets hosts for all its roles or none."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import (
    Case,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest, Now

from orchestrator.database.clock import read_database_time
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import Host
from orchestrator.runs.models import HostLease, HostRole, Job, Placement, Run
from orchestrator.runs.queue import (
    AGEING_S,
    BACKGROUND,
    MAX_RISE,
    BusyHost,
    FreeHost,
    Grant,
    HostPool,
    PlacementRequest,
    WaitingJob,
    choose_grants,
)
from orchestrator.runs.run_state import sync_run_state
from orchestrator.runs.states import JOB_ENDED, JobState
from orchestrator.runs.version_keys import NEXT_REVISION

#: The machine time that a team used counts against it for this long.
MEMORY_S = 3600.0
#: Queued jobs of a team that are read at once, the highest levels first.
JOBS_PER_PAGE = 2_000

#: The place of a job in the queue of its team: its level, creation and id.
_Place = tuple[int, datetime, uuid.UUID]


def lease_queued_jobs(
    on_lease: Callable[[uuid.UUID], object] | None = None,
) -> list[uuid.UUID]:
    """Lease free hosts to queued jobs in the order of the queue; return the jobs with new leases.

    `on_lease` is called with each of these jobs at once: leases of 1,000 hosts take many seconds.
    Several pumps may run in parallel: the unique constraint on leases of a host resolves races.
    """
    now = read_database_time()
    pool = load_pool(now)
    granted: list[Grant] = []
    after: dict[int, _Place] = {}
    # Each page has only jobs that could use a host that is still free, so a long queue of some
    # hosts hides no job of another one. Usually the first page is the last.
    while pool.free and (waiting := _load_waiting(now, pool, after)):
        granted += choose_grants(waiting, pool, _sum_used_s({job.team for job in waiting}, now))
    leased = []
    for grant in granted:
        if _lease_hosts(grant):
            leased.append(grant.job)
            if on_lease is not None:
                on_lease(grant.job)
    return leased


def release(job: Job) -> None:
    HostLease.objects.filter(job=job).delete()


def release_stale_leases() -> int:
    """Release leases whose job has ended in another way; return their number."""
    return HostLease.objects.filter(job__state__in=JOB_ENDED).delete()[0]


def _lease_hosts(grant: Grant) -> bool:
    """Create all leases of a job in one transaction, in the order of hosts, or none of them."""
    try:
        with transaction.atomic():
            job = (
                Job.objects.select_for_update(skip_locked=True)
                .filter(pk=grant.job, state=JobState.QUEUED)
                .first()
            )
            if job is None:
                return False
            for host in sorted(set(grant.hosts.values())):
                HostLease.objects.create(host_id=host, job=job)
            _begin_job(job, grant.hosts)
    except IntegrityError:
        return False
    return True


def _begin_job(job: Job, hosts: Mapping[str, uuid.UUID]) -> None:
    for role, host in hosts.items():
        Placement.objects.filter(job=job, role=role).update(host=host)
    Job.objects.filter(pk=job.pk).update(
        state=JobState.PREPARING,
        phase="connecting",
        host=hosts[HostRole.TARGET],
        shared_hosts=Exists(Host.objects.filter(pk__in=hosts.values(), is_shared=True)),
        started_at=job.started_at or Now(),
        poll_at=Now(),
        not_before=None,
        revision=NEXT_REVISION,
    )
    sync_run_state(job.run_id)


def _load_waiting(now: datetime, pool: HostPool, after: dict[int, _Place]) -> list[WaitingJob]:
    """Return the next page of the queue of each team with a free host, and move `after` to it."""
    page: list[WaitingJob] = []
    for team in sorted({host.team for host in pool.free.values()}):
        places = _load_places(now, team, pool, after.get(team))
        if places:
            after[team] = places[-1]
            jobs = Job.objects.filter(pk__in=[pk for _, _, pk in places])
            page += build_waiting_jobs(jobs, now)
    return page


def build_waiting_jobs(jobs: QuerySet[Job], now: datetime) -> list[WaitingJob]:
    """Return these queued jobs as input of the queue."""
    rows = list(
        jobs.values_list(
            "pk", "run__team_id", "run__definition__benchmark_id", "run__priority", "created_at",
            "expected_s", "run_id",
        )
    )  # fmt: skip
    asks = _load_requests([row[0] for row in rows])
    newest = _load_newest_positions({row[6] for row in rows})
    return [
        WaitingJob(
            job=pk,
            team=team,
            benchmark=benchmark,
            priority=priority,
            waited_s=(now - created).total_seconds(),
            expected_s=expected,
            asks=tuple(asks[pk]),
            commit=newest.get(run),
        )
        for pk, team, benchmark, priority, created, expected, run in rows
        if asks[pk]
    ]


def _load_places(now: datetime, team: int, pool: HostPool, after: _Place | None) -> list[_Place]:
    """Return the next JOBS_PER_PAGE of a team's jobs that a free host could do now.

    A job on several hosts is left out if another of them is neither free nor busy.
    """
    free = [host for host in pool.free.values() if host.team == team]
    busy = [host for host in pool.busy.values() if host.team == team]
    own = Placement.objects.filter(job=OuterRef("pk"))
    jobs = (
        Job.objects.filter(
            Q(not_before=None) | Q(not_before__lte=now),
            Exists(own.filter(_can_use(free))),
            ~Exists(own.exclude(_can_use([*free, *busy]))),
            state=JobState.QUEUED,
            run__team=team,
        )
        .annotate(level=_compute_level(now))
        .order_by("-level", "created_at", "pk")
    )
    if after is not None:
        level, created, pk = after
        younger = Q(created_at__gt=created) | Q(created_at=created, pk__gt=pk)
        jobs = jobs.filter(Q(level__lt=level) | Q(younger, level=level))
    return list(jobs.values_list("level", "created_at", "pk")[:JOBS_PER_PAGE])


def _compute_level(now: datetime) -> Case:
    """Return the SQL of `WaitingJob.level`."""
    rises = (
        When(
            run__priority__gt=BACKGROUND,
            created_at__lte=now - timedelta(seconds=AGEING_S * rise),
            then=F("run__priority") + rise,
        )
        for rise in range(MAX_RISE, 0, -1)
    )
    return Case(*rises, default=F("run__priority"), output_field=IntegerField())


def _can_use(hosts: Sequence[FreeHost]) -> Q:
    """Return the condition of a placement that one of these hosts may serve before it closes."""
    by_closing: dict[float, list[FreeHost]] = defaultdict(list)
    for host in hosts:
        by_closing[host.closes_in_s].append(host)
    # Without hosts, no placement.
    condition = Q(pk__in=[])
    for closes_in_s, group in by_closing.items():
        wanted = (
            Q(wanted_host__in=[host.host for host in group])
            | Q(wanted_profile__in={host.profile for host in group})
            | Q(wanted_tag__in={tag for host in group for tag in host.tags})
        )
        in_time = Q() if closes_in_s == inf else Q(job__expected_s__lte=closes_in_s)
        condition |= wanted & in_time
    return condition


def _load_requests(jobs: list[uuid.UUID]) -> dict[uuid.UUID, list[PlacementRequest]]:
    requests: dict[uuid.UUID, list[PlacementRequest]] = defaultdict(list)
    rows = Placement.objects.filter(job__in=jobs).values_list(
        "job_id", "role", "wanted_host_id", "wanted_profile_id", "wanted_tag", "avoid"
    )
    for job, role, host, profile, tag, avoid in rows:
        ask = PlacementRequest(
            role=role, host=host, profile=profile, tag=tag, avoid=frozenset(avoid)
        )
        requests[job].append(ask)
    return requests


def _load_newest_positions(runs: set[uuid.UUID]) -> dict[uuid.UUID, int | None]:
    """Return the position of each run's newest commit in the history."""
    rows = Run.objects.filter(pk__in=runs)
    return dict(rows.values_list("pk").annotate(Max("variants__commit__position")))


def load_pool(now: datetime) -> HostPool:
    """Return the open hosts of the teams that have queued jobs: free, or leased to a job."""
    queued = Job.objects.filter(state=JobState.QUEUED)
    teams = set(queued.values_list("run__team_id", flat=True).distinct())
    pool = HostPool(free={})
    if not teams:
        return pool
    leases = HostLease.objects.values_list("host_id", "taken_at", "job__expected_s")
    free_at = {host: taken + timedelta(seconds=expected) for host, taken, expected in leases}
    for host in fleet.load_usable_hosts(teams):
        left = host.hours.seconds_left(now, host.timezone)
        if left is None:
            continue
        known: dict[str, Any] = {
            "host": host.id,
            "team": host.team_id,
            "profile": host.profile_id,
            "tags": frozenset(host.tags),
        }
        if host.id in free_at:
            free_in_s = (free_at[host.id] - now).total_seconds()
            known |= {"free_in_s": free_in_s, "closes_in_s": left - max(0.0, free_in_s)}
            pool.busy[host.id] = BusyHost(**known)
        else:
            pool.free[host.id] = FreeHost(**known, closes_in_s=left)
    return pool


def _sum_used_s(teams: set[int], now: datetime) -> dict[int, float]:
    """Return the machine seconds of each team within MEMORY_S: past use and current leases."""
    if len(teams) == 1:
        return {}
    since = now - timedelta(seconds=MEMORY_S)
    until = Coalesce("ended_at", Value(now))
    spent = ExpressionWrapper(
        until - Greatest("started_at", Value(since)), output_field=DurationField()
    )
    rows = (
        Job.objects.filter(
            Q(ended_at__gte=since) | Q(ended_at=None),
            started_at__isnull=False,
            run__team__in=teams,
        )
        .values("run__team_id")
        .annotate(used=Sum(spent))
        .values_list("run__team_id", "used")
    )
    return {team: used.total_seconds() for team, used in rows}
