"""Who gets which hosts next follows from priority, fairness, age and what is free."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.runs.queue import (
    AGEING_S,
    LATEST_S,
    LONGEST_RESERVATION_S,
    RESERVE_AFTER_S,
    BusyHost,
    FreeHost,
    HostPool,
    PlacementRequest,
    WaitingJob,
    choose_grants,
)

RED, BLUE = 1, 2


def host(number: int, team: int = RED, **changes: object) -> FreeHost:
    return replace(FreeHost(host=UUID(int=number), team=team, profile=1), **changes)


def job(number: int, *asks: PlacementRequest, team: int = RED, **changes: object) -> WaitingJob:
    plain = WaitingJob(
        job=UUID(int=1000 + number),
        team=team,
        benchmark=1,
        priority=0,
        waited_s=100.0 - number,
        expected_s=60.0,
        asks=asks or (PlacementRequest(role="target", profile=1),),
    )
    return replace(plain, **changes)


def on(number: int, role: str = "target") -> PlacementRequest:
    return PlacementRequest(role=role, host=UUID(int=number))


def busy(number: int, free_in_s: float, **changes: object) -> BusyHost:
    plain = BusyHost(host=UUID(int=number), team=RED, profile=1, free_in_s=free_in_s)
    return replace(plain, **changes)


def pool(free: list[FreeHost], *leased: BusyHost) -> HostPool:
    return HostPool(
        free={each.host: each for each in free}, busy={each.host: each for each in leased}
    )


def granted(
    waiting: list[WaitingJob],
    free: list[FreeHost],
    used: dict[int, float] | None = None,
    leased: tuple[BusyHost, ...] = (),
) -> list[int]:
    grants = choose_grants(waiting, pool(free, *leased), used or {})
    return [grant.job.int - 1000 for grant in grants]


def test_queue_serves_the_oldest_first() -> None:
    assert granted([job(2), job(1)], [host(1)]) == [1]


def test_queue_serves_a_higher_priority_first() -> None:
    assert granted([job(1), job(2, priority=1)], [host(1)]) == [2]


def test_queue_raises_the_priority_of_a_job_that_waited_long() -> None:
    old = job(1, waited_s=2 * AGEING_S, priority=-1)
    assert granted([old, job(2, priority=0)], [host(1)]) == [1]


def test_queue_serves_the_team_with_less_use() -> None:
    waiting = [job(1), job(2, team=BLUE)]
    shared = [host(1), host(2, team=BLUE)]
    assert granted(waiting, shared, {RED: 600.0, BLUE: 0.0}) == [2, 1]


def test_queue_alternates_between_teams_within_one_tick() -> None:
    waiting = [job(n) for n in (1, 2, 3)] + [job(n, team=BLUE) for n in (7, 8, 9)]
    free = [host(n) for n in (1, 2, 3)] + [host(n, team=BLUE) for n in (4, 5, 6)]
    assert granted(waiting, free) == [1, 7, 2, 8, 3, 9]


def test_queue_measures_parents_first() -> None:
    waiting = [job(1, commit=9), job(2, commit=8), job(3, benchmark=2, commit=1)]
    assert granted(waiting, [host(n) for n in range(3)]) == [2, 1, 3]


def test_queue_gives_all_hosts_of_a_job_or_none() -> None:
    two = job(1, on(1), on(2, "generator"))
    assert granted([two], [host(1)]) == []
    assert choose_grants([two], pool([host(1), host(2)]), {})[0].hosts == {
        "target": UUID(int=1),
        "generator": UUID(int=2),
    }


def test_queue_gives_roles_of_one_tag_different_hosts() -> None:
    asks = (
        PlacementRequest(role="target", tag="fast"),
        PlacementRequest(role="generator", tag="fast"),
    )
    fast = frozenset({"fast"})
    assert granted([job(1, *asks)], [host(1, tags=fast)]) == []
    grants = choose_grants([job(1, *asks)], pool([host(1, tags=fast), host(2, tags=fast)]), {})
    assert len(set(grants[0].hosts.values())) == 2


def test_queue_reserves_the_only_candidate_of_a_role() -> None:
    asks = (PlacementRequest(role="target", profile=1), on(1, "generator"))
    grants = choose_grants([job(1, *asks)], pool([host(1), host(2)]), {})
    assert grants[0].hosts == {"target": UUID(int=2), "generator": UUID(int=1)}


def test_queue_avoids_a_host_that_failed_the_job() -> None:
    ask = PlacementRequest(role="target", profile=1, avoid=frozenset({UUID(int=1)}))
    assert granted([job(1, ask)], [host(1)]) == []
    assert granted([job(1, ask)], [host(1), host(2)]) == [1]


def test_queue_starts_nothing_that_would_outlast_the_open_hours() -> None:
    assert granted([job(1)], [host(1, closes_in_s=59.0)]) == []
    assert granted([job(1)], [host(1, closes_in_s=61.0)]) == [1]


def test_queue_never_gives_a_host_of_another_team() -> None:
    assert granted([job(1, on(1))], [host(1, team=BLUE)]) == []


def test_queue_reserves_free_hosts_for_a_job_that_needs_several() -> None:
    two = job(1, on(1), on(2, "generator"), waited_s=RESERVE_AFTER_S)
    small = job(2, on(1), waited_s=1.0)
    soon = (busy(2, free_in_s=59.0),)
    assert granted([two, small], [host(1)], leased=soon) == []
    young = replace(two, waited_s=RESERVE_AFTER_S - 1)
    assert granted([young, small], [host(1)], leased=soon) == [2]
    # A late job may end at any moment.
    assert granted([two, small], [host(1)], leased=(busy(2, -LATEST_S),)) == []


def test_queue_reserves_no_host_for_one_that_is_away_or_not_free_soon() -> None:
    """Whatever the level of the job that needs both; `host(2)` is off, closed or held."""
    two = job(1, on(1), on(2, "generator"), waited_s=4 * AGEING_S, priority=2)
    small = job(2, on(1), waited_s=1.0, priority=-2)
    assert granted([two, small], [host(1)]) == [2]
    for free_in_s in (LONGEST_RESERVATION_S + 1, -LATEST_S - 1):
        assert granted([two, small], [host(1)], leased=(busy(2, free_in_s),)) == [2]
    # It opens for too short a time.
    closing = busy(2, 30.0, closes_in_s=59.0)
    assert granted([two, small], [host(1)], leased=(closing,)) == [2]


def test_queue_fills_reserved_hosts_with_jobs_that_end_in_time() -> None:
    two = job(1, on(1), on(2, "generator"), waited_s=2 * RESERVE_AFTER_S)
    long, short = job(2, on(1), expected_s=301.0), job(3, on(1), expected_s=299.0)
    assert granted([two, long, short], [host(1)], leased=(busy(2, 300.0),)) == [3]


def test_queue_reserves_a_busy_host_for_one_job_only() -> None:
    first = job(1, on(1), on(2, "generator"), waited_s=2 * RESERVE_AFTER_S)
    second = job(2, on(3), on(2, "generator"), waited_s=RESERVE_AFTER_S)
    small = job(4, on(3), waited_s=1.0)
    assert granted([first, second, small], [host(1), host(3)], leased=(busy(2, 5.0),)) == [4]


@given(
    wishes=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([RED, BLUE])), max_size=12
    ),
    free=st.sets(st.integers(0, 3)),
)
def test_queue_never_gives_a_host_twice(wishes: list[tuple[int, int, int]], free: set[int]) -> None:
    waiting = [
        job(n, on(a), *([on(b, "generator")] if a != b else []), team=team)
        for n, (a, b, team) in enumerate(wishes)
    ]
    hosts = [host(n, team=RED if n % 2 else BLUE) for n in free]
    given_away = [
        h for grant in choose_grants(waiting, pool(hosts), {}) for h in set(grant.hosts.values())
    ]
    assert len(given_away) == len(set(given_away))
    assert set(given_away) <= {each.host for each in hosts}
