"""The order of the queue and the choice of hosts. Pure functions; `leasing` applies them.

The queue is ordered by level (priority, raised by ageing), then by the machine time that teams used
recently, then by age. Among the jobs of one benchmark the older commit goes first, since a
comparison needs the parent's values.

A job that needs several hosts reserves the free ones while the others are merely leased and will be
free soon. Until then a reserved host does jobs that end in time (backfilling).
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

#: A job rises by one level each time it has waited this long, at most MAX_RISE levels.
AGEING_S = 1800.0
MAX_RISE = 4
#: The priority that waiting does not raise (models.Priority.BACKGROUND).
BACKGROUND = -2
#: After this time a job that needs several hosts reserves those that become free,
RESERVE_AFTER_S = 60.0
#: if the others are expected to be free within this time,
LONGEST_RESERVATION_S = 1800.0
#: and as long as their jobs are not later than this.
LATEST_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """The request of one role: a host, a profile or a tag; never a host of `avoid`."""

    role: str
    host: UUID | None = None
    profile: int | None = None
    tag: str = ""
    avoid: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A queued job. `commit` is the position of its newest commit in the history, if known."""

    job: UUID
    team: int
    benchmark: int
    priority: int
    waited_s: float
    expected_s: float
    asks: tuple[PlacementRequest, ...]
    commit: int | None = None

    @property
    def level(self) -> int:
        if self.priority <= BACKGROUND:
            return self.priority
        return self.priority + min(MAX_RISE, int(self.waited_s // AGEING_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeHost:
    """A host without a lease. `closes_in_s`: the seconds until its opening hours end."""

    host: UUID
    team: int
    profile: int
    tags: frozenset[str] = frozenset()
    closes_in_s: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyHost(FreeHost):
    """A host with a lease. `free_in_s`: the expected seconds until its end; negative if it is late.

    `closes_in_s` counts from that end.
    """

    free_in_s: float


@dataclass(slots=True)
class HostPool:
    """The hosts that `choose_grants` may still give away, and those that become free later."""

    free: dict[UUID, FreeHost]
    busy: dict[UUID, BusyHost] = field(default_factory=dict)

    def take(self, hosts: Iterable[UUID]) -> None:
        for host in hosts:
            self.free.pop(host, None)

    def reserve(self, hosts: Sequence[UUID]) -> None:
        """Keep these hosts for one job: the free ones only do what ends before the last is free."""
        waiting = [self.busy.pop(host) for host in hosts if host in self.busy]
        until_s = max((host.free_in_s for host in waiting), default=0.0)
        for pk in hosts:
            if host := self.free.get(pk):
                self.free[pk] = replace(host, closes_in_s=min(host.closes_in_s, until_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A job and the host for each of its roles."""

    job: UUID
    hosts: Mapping[str, UUID] = field(default_factory=dict)


def choose_grants(
    waiting: Iterable[WaitingJob], pool: HostPool, used_s: Mapping[int, float]
) -> list[Grant]:
    """Return the jobs that may start now, in the order of the queue; take their hosts from `pool`.

    `used_s`: the machine seconds of each team in recent time, including current leases.
    """
    grants = []
    for job in iterate_queue(waiting, used_s, placed := set()):
        if not pool.free:
            break
        hosts = place(job, pool.free.values())
        if hosts is not None:
            grants.append(Grant(job=job.job, hosts=hosts))
            placed.add(job.job)
            pool.take(hosts.values())
        elif len(job.asks) > 1 and job.waited_s >= RESERVE_AFTER_S:
            pool.reserve(_choose_reserved(job, pool))
    return grants


def iterate_queue(
    waiting: Iterable[WaitingJob], used_s: Mapping[int, float], placed: set[UUID]
) -> Iterable[WaitingJob]:
    """Yield the queue from its head; a team whose job was `placed` falls back accordingly."""
    levels: dict[int, dict[int, list[WaitingJob]]] = defaultdict(lambda: defaultdict(list))
    for job in waiting:
        levels[job.level][job.team].append(job)
    used = defaultdict(float, used_s)
    for level in sorted(levels, reverse=True):
        queues = {team: sort_parents_first(jobs)[::-1] for team, jobs in levels[level].items()}
        heap = [(used[team], team) for team in queues]
        heapq.heapify(heap)
        while heap:
            _, team = heapq.heappop(heap)
            job = queues[team].pop()
            yield job
            if job.job in placed:
                used[team] += job.expected_s * len(job.asks)
            if queues[team]:
                heapq.heappush(heap, (used[team], team))


def sort_parents_first(jobs: Sequence[WaitingJob]) -> list[WaitingJob]:
    """Order by age, but sort the positions of each benchmark's jobs by commit."""
    aged = sorted(jobs, key=lambda job: -job.waited_s)
    places: dict[int, list[int]] = defaultdict(list)
    for place_, job in enumerate(aged):
        if job.commit is not None:
            places[job.benchmark].append(place_)
    result = list(aged)
    for taken in places.values():
        by_commit = sorted((aged[at] for at in taken), key=lambda job: job.commit or 0)
        for at, job in zip(taken, by_commit, strict=True):
            result[at] = job
    return result


def place(job: WaitingJob, free: Iterable[FreeHost]) -> dict[str, UUID] | None:
    """Assign a host to every role; None if impossible. A host is used twice only if named twice.

    Roles with fewer candidates choose first; a role never takes another's only candidate.
    """
    hosts = list(free)
    wishes = {ask.role: [h.host for h in hosts if can_play_role(job, ask, h)] for ask in job.asks}
    return _assign(sorted(job.asks, key=lambda ask: len(wishes[ask.role])), wishes, {})


def can_play_role(job: WaitingJob, ask: PlacementRequest, host: FreeHost) -> bool:
    """Return whether this host may play this role of the job now."""
    if host.team != job.team or host.host in ask.avoid or host.closes_in_s < job.expected_s:
        return False
    if ask.host is not None:
        return host.host == ask.host
    return host.profile == ask.profile if ask.profile is not None else ask.tag in host.tags


def _assign(
    asks: Sequence[PlacementRequest], wishes: Mapping[str, list[UUID]], taken: dict[str, UUID]
) -> dict[str, UUID] | None:
    """Search depth first; there are at most three roles."""
    if not asks:
        return taken
    ask, rest = asks[0], asks[1:]
    for host in wishes[ask.role]:
        if host in taken.values() and ask.host is None:
            continue
        assignment = _assign(rest, wishes, {**taken, ask.role: host})
        if assignment is not None:
            return assignment
    return None


def _choose_reserved(job: WaitingJob, pool: HostPool) -> list[UUID]:
    """Return hosts for all roles, some of which are free soon; none if that is not in sight.

    A host that is away, closed or in maintenance is neither free nor busy: nobody waits for it.
    """
    soon = [
        host for host in pool.busy.values() if -LATEST_S <= host.free_in_s <= LONGEST_RESERVATION_S
    ]
    soon.sort(key=lambda host: host.free_in_s)
    hosts = place(job, [*pool.free.values(), *soon]) or {}
    return list(hosts.values())
