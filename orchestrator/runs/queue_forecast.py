"""The queue of a team as its members see it: positions, reasons for waiting, expected starts.

The forecast applies the order of `queue` to the present jobs: each gets the hosts that are free
first. It is rough, since jobs may end early and new ones may come.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.runs.eta import ABSENT
from orchestrator.runs.leasing import build_waiting_jobs
from orchestrator.runs.models import HostLease, Job, Placement
from orchestrator.runs.queue import FreeHost, WaitingJob, iterate_queue, place
from orchestrator.runs.states import JobState
from orchestrator.runs.wait_reasons import Candidates, describe_wait

#: The jobs from the head of the queue whose starts are forecast.
MOST_FORECASTS = 1_000
#: The opening hours of hosts that a job does not fit into, before its start is unknown.
_MOST_OPENINGS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """The place of a queued job. `position`: 1 is the head of the queue of the team.

    `starts_at`: the expected start; None if there is none, with the reason in `unknown`.
    """

    job_id: UUID
    position: int
    starts_at: datetime | None
    unknown: str


class QueueEntry(NamedTuple):
    """A place with its job, and the reason why the job waits."""

    place: QueuePlace
    job: Job
    waiting: str


@dataclass(slots=True)
class _Forecast:
    """The hosts that can do jobs, and when each of them is free after the jobs so far."""

    now: datetime
    hosts: dict[UUID, Host]
    free_at: dict[UUID, datetime]
    _as_free: dict[UUID, FreeHost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pk, host in self.hosts.items():
            self._as_free[pk] = FreeHost(
                host=pk, team=host.team_id, profile=host.profile_id, tags=frozenset(host.tags)
            )

    def place(self, job: WaitingJob, not_before: datetime | None) -> tuple[datetime | None, str]:
        """Give the job the hosts that are free first; return its start, or why it has none."""
        by_time = sorted(self._as_free.values(), key=lambda host: self.free_at[host.host])
        chosen = place(job, by_time)
        if chosen is None:
            return None, "no host that it could use answers and accepts jobs"
        hosts = [self.hosts[pk] for pk in set(chosen.values())]
        earliest = max(self.now, not_before or self.now, *(self.free_at[host.pk] for host in hosts))
        start = _find_opening(hosts, earliest, job.expected_s)
        if start is None:
            return None, "its hosts are never open long enough for it"
        for host in hosts:
            self.free_at[host.pk] = start + timedelta(seconds=job.expected_s)
        return start, ""


def load_queue(member: Member) -> list[QueuePlace]:
    """Return the places of the jobs that the member may see, in the order of the team's queue."""
    now = utc_now()
    queued = Job.objects.filter(state=JobState.QUEUED, run__team=member.team)
    ordered = iterate_queue(build_waiting_jobs(queued, now), {}, set())
    not_before = dict(queued.values_list("pk", "not_before"))
    visible = set(_select_visible(member).values_list("pk", flat=True))
    forecast = _start_forecast(member.team, now)
    places = []
    for position, job in enumerate(ordered, start=1):
        if position <= MOST_FORECASTS:
            starts_at, unknown = forecast.place(job, not_before.get(job.job))
        else:
            starts_at, unknown = None, f"only the first {MOST_FORECASTS} jobs have a forecast"
        if job.job in visible:
            place_ = QueuePlace(
                job_id=job.job, position=position, starts_at=starts_at, unknown=unknown
            )
            places.append(place_)
    return places


def load_queue_entries(member: Member, places: Iterable[QueuePlace]) -> list[QueueEntry]:
    """Return the jobs of these places with reasons; jobs that have left the queue are omitted."""
    wanted = list(places)
    placements = Placement.objects.select_related("wanted_host", "wanted_profile", "job__run")
    jobs = (
        _select_visible(member)
        .select_related("host", "run__definition__benchmark__project", "run__requested_by")
        .prefetch_related(Prefetch("placements", placements))
        .in_bulk([place_.job_id for place_ in wanted])
    )
    known = Candidates()
    return [
        QueueEntry(place_, job, describe_wait(job, known))
        for place_ in wanted
        if (job := jobs.get(place_.job_id)) is not None
    ]


def _select_visible(member: Member) -> QuerySet[Job]:
    seen = member.sees("run__definition__benchmark__project", team="run__team")
    return Job.objects.filter(seen, state=JobState.QUEUED)


def _start_forecast(team: Team, now: datetime) -> _Forecast:
    hosts = Host.objects.filter(team=team).exclude(state__in=ABSENT)
    by_key = {host.pk: host for host in hosts}
    free_at = dict.fromkeys(by_key, now)
    leases = HostLease.objects.filter(host__in=by_key)
    for pk, taken_at, expected_s in leases.values_list("host_id", "taken_at", "job__expected_s"):
        free_at[pk] = max(now, taken_at + timedelta(seconds=expected_s))
    return _Forecast(now=now, hosts=by_key, free_at=free_at)


def _find_opening(hosts: Sequence[Host], start: datetime, for_s: float) -> datetime | None:
    """Return the first time from `start` on at which all hosts are open long enough."""
    for _ in range(_MOST_OPENINGS):
        opened = max(host.hours.next_open(start, host.timezone) for host in hosts)
        left = [host.hours.seconds_left(opened, host.timezone) for host in hosts]
        if all(each is not None and each >= for_s for each in left):
            return opened
        closing = min((each for each in left if each is not None), default=0.0)
        start = opened + timedelta(seconds=closing)
    return None
