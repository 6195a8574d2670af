"""Leases: free hosts for queued jobs; a job gets hosts for all its roles or none."""

import uuid
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import (
    DurationField,
    Exists,
    ExpressionWrapper,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce, Greatest, Now

from orchestrator.database.clock import read_database_time
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import Host
from orchestrator.runs.models import HostLease, HostRole, Job, Placement, Run
from orchestrator.runs.queue import FreeHost, Grant, PlacementRequest, WaitingJob, choose_grants
from orchestrator.runs.run_state import sync_run_state
from orchestrator.runs.states import JOB_ENDED, JobState
from orchestrator.runs.version_keys import NEXT_REVISION

#: The machine time that a team used counts against it for this long.
MEMORY_S = 3600.0
#: Queued jobs of a team that one tick considers, the oldest of each priority first.
JOBS_PER_TICK = 2_000


def lease_queued_jobs() -> list[uuid.UUID]:
    """Lease free hosts to queued jobs in the order of the queue; return the jobs with new leases.

    Several pumps may run in parallel: the unique constraint on leases of a host resolves races.
    """
    now = read_database_time()
    free = _load_free_hosts(now)
    if not free:
        return []
    waiting = _load_waiting(now, free)
    if not waiting:
        return []
    granted = choose_grants(waiting, free, _sum_used_s({job.team for job in waiting}, now))
    return [grant.job for grant in granted if _lease_hosts(grant)]


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


def _load_waiting(now: datetime, free: list[FreeHost]) -> list[WaitingJob]:
    """Return the queued jobs that could use one of the free hosts of their team."""
    of_team: dict[int, list[FreeHost]] = defaultdict(list)
    for host in free:
        of_team[host.team].append(host)
    rows = [row for team in sorted(of_team) for row in _load_team_jobs(now, team, of_team[team])]
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


def _load_team_jobs(now: datetime, team: int, free: list[FreeHost]) -> list[tuple[Any, ...]]:
    """Return the first JOBS_PER_TICK of a team's jobs.

    Each team has a separate limit, so the jobs of one never hide those of another.
    """
    return list(
        Job.objects.filter(
            Q(not_before=None) | Q(not_before__lte=now),
            Exists(_filter_placements(free).filter(job=OuterRef("pk"))),
            state=JobState.QUEUED,
            run__team=team,
        )
        .order_by("-run__priority", "created_at")
        .values_list(
            "pk", "run__team_id", "run__definition__benchmark_id", "run__priority", "created_at",
            "expected_s", "run_id",
        )[:JOBS_PER_TICK]
    )  # fmt: skip


def _filter_placements(free: list[FreeHost]) -> QuerySet[Placement]:
    tags = {tag for host in free for tag in host.tags}
    return Placement.objects.filter(
        Q(wanted_host__in=[host.host for host in free])
        | Q(wanted_profile__in={host.profile for host in free})
        | Q(wanted_tag__in=tags)
    )


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


def _load_free_hosts(now: datetime) -> list[FreeHost]:
    """Return open hosts without a lease, of the teams that have queued jobs."""
    queued = Job.objects.filter(state=JobState.QUEUED)
    teams = set(queued.values_list("run__team_id", flat=True).distinct())
    if not teams:
        return []
    leased = set(HostLease.objects.values_list("host_id", flat=True))
    free_hosts = []
    for host in fleet.load_usable_hosts(teams):
        if host.id in leased:
            continue
        left = host.hours.seconds_left(now, host.timezone)
        if left is not None:
            free_hosts.append(
                FreeHost(
                    host=host.id,
                    team=host.team_id,
                    profile=host.profile_id,
                    tags=frozenset(host.tags),
                    closes_in_s=left,
                )
            )
    return free_hosts


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
