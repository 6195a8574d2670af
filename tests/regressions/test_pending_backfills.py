"""Suspected changes wait for the backfill that measures their commits, and are confirmed once."""

from collections.abc import Callable

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.regressions import bisections, confirmations
from orchestrator.regressions.pending_backfills import is_backfilled, load_pending_positions
from orchestrator.regressions.segmentation import detect_next_series
from orchestrator.results.models import Bisection, ChangePoint, Series
from orchestrator.runs.backfills import (
    BackfillRequest,
    cancel_backfill,
    load_backfill_runs,
    start_backfill,
)
from orchestrator.runs.earlier_commits import CommitSelection
from orchestrator.runs.models import Backfill, Run
from tests.support.factories import commit_files, finish_run, make_definition, make_local_host
from tests.support.fetches import fetch_now
from tests.support.world import World

COMMITS = 33
#: From this commit on the server is 10 % slower.
SLOW = 21
RATE = "requests.rate"


@pytest.fixture
def world(world: World) -> World:
    """The main line has 33 commits. None of them was measured."""
    for number in range(len(world.shas), COMMITS):
        world.shas.append(commit_files(world.repository, {"file.txt": f"{number}\n"}, number))
    fetch_now(world.project)
    return world


def _start(world: World, host: str = "here", count: int = COMMITS, **fields: int) -> Backfill:
    selection = CommitSelection(source="last", count=count, **fields)
    request = BackfillRequest(benchmark="hello", hosts=(host,), selection=selection, rounds=5)
    return start_backfill(member=world.alice, request=request)


def _place(world: World, run: Run) -> int:
    return world.shas.index(run.variants.get(position=0).commit.sha)


def _measure(world: World, run: Run, slow: int = SLOW) -> None:
    """Finish a run as measured on the host: from `slow` on the server is slower."""
    rates = [
        900.0 if world.shas.index(each.commit.sha) >= slow else 1000.0
        for each in run.variants.select_related("commit").order_by("position")
    ]
    finish_run(run, rates)


def _tick() -> None:
    """As the periodic tasks do."""
    while detect_next_series():
        pass
    confirmations.advance_confirmations(utc_now())
    bisections.advance_bisections(utc_now())


def _own_runs() -> list[Run]:
    return list(Run.objects.filter(trigger__in=("confirm", "bisect")).order_by("created_at"))


def _backfill_until(world: World, backfill: Backfill, stop: Callable[[], bool]) -> list[Run]:
    """Measure its runs in their order until `stop`; return the others."""
    runs = load_backfill_runs(backfill)
    while runs and not stop():
        _measure(world, runs.pop(0))
        _tick()
    return runs


def _rate_change() -> ChangePoint | None:
    return ChangePoint.objects.filter(series__metric__key=RATE).exclude(state="superseded").first()


def test_a_change_is_confirmed_once_between_neighbours_after_the_backfill(world: World) -> None:
    backfill = _start(world)
    left = _backfill_until(world, backfill, stop=lambda: _rate_change() is not None)
    suspected = _rate_change()
    assert suspected is not None
    between = range(world.shas.index(suspected.before.sha), world.shas.index(suspected.commit.sha))
    assert len(between) > 1, "the first points are far apart"
    assert suspected.state == "open"
    assert suspected.message == "waits for a backfill, which measures commits of this change"
    assert not _own_runs()

    while left:
        _measure(world, left.pop(0))
        _tick()
        pending = {_place(world, run) for run in left}
        measured_again = {
            world.shas.index(each.commit.sha)
            for run in _own_runs()
            for each in run.variants.select_related("commit")
        }
        assert not measured_again & pending, "the backfill measures these commits itself"

    for run in _own_runs():
        _measure(world, run)
    for _ in range(3):
        _tick()
    [confirmation] = _own_runs()
    commits = [each.commit.sha for each in confirmation.variants.order_by("position")]
    assert commits == world.shas[SLOW - 1 : SLOW + 1]
    suspected.refresh_from_db()
    assert (suspected.state, suspected.culprit and suspected.culprit.sha) == (
        "confirmed", world.shas[SLOW],
    )  # fmt: skip
    assert suspected.confirmation_runs == 1
    assert not Bisection.objects.exists()


def test_a_change_outside_of_the_pending_commits_does_not_wait(world: World) -> None:
    # Only commits before the change are left.
    backfill = _start(world)
    runs = load_backfill_runs(backfill)
    for run in [each for each in runs if _place(world, each) >= SLOW - 5]:
        _measure(world, run)
    _tick()
    [confirmation] = _own_runs()
    variants = confirmation.variants.order_by("position")
    places = [world.shas.index(each.commit.sha) for each in variants]
    assert places == [SLOW - 1, SLOW]


def test_a_cancelled_backfill_is_not_waited_for(world: World) -> None:
    backfill = _start(world)
    _backfill_until(world, backfill, stop=lambda: _rate_change() is not None)
    assert not _own_runs()
    cancel_backfill(member=world.alice, backfill_id=backfill.pk)
    _tick()
    [confirmation] = _own_runs()
    assert confirmation.trigger == "confirm"


def test_a_member_need_not_wait(world: World) -> None:
    backfill = _start(world)
    _backfill_until(world, backfill, stop=lambda: _rate_change() is not None)
    change = _rate_change()
    assert change is not None
    run = confirmations.confirm_now(member=world.alice, change_id=change.pk)
    assert _own_runs() == [run]


def test_a_bisection_waits_for_a_backfill_that_was_started_later(world: World) -> None:
    for run in load_backfill_runs(_start(world, every=4)):
        _measure(world, run)
    _tick()
    [confirmation] = _own_runs()
    _measure(world, confirmation)
    change = _rate_change()
    assert change is not None
    left = load_backfill_runs(_start(world))
    _tick()
    change.refresh_from_db()
    assert change.state == "confirmed"
    assert not Bisection.objects.exists()

    for run in left:
        _measure(world, run)
        _tick()

    change.refresh_from_db()
    assert change.culprit is not None
    assert change.culprit.sha == world.shas[SLOW]
    assert [run.trigger for run in _own_runs()] == ["confirm"]


def test_recency_does_not_depend_on_the_order_of_the_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.regressions.revision.RECENT", 8)
    backfill = _start(world)
    _backfill_until(world, backfill, stop=lambda: _rate_change() is not None)
    change = _rate_change()
    assert change is not None
    # Few points follow it so far, but more than eight will.
    assert (change.recent, change.final) == (False, True)
    assert "before the newest 8 points" in change.message


def test_only_runs_of_the_same_benchmark_host_and_case_count(world: World) -> None:
    other = make_local_host(world.alice, "other")
    _start(world, count=3)
    case, benchmark = world.benchmark.cases.get(), world.benchmark.pk
    commits = world.commits
    assert load_pending_positions(benchmark, world.host, [case.pk]) == {30, 31, 32}
    assert load_pending_positions(benchmark, other, [case.pk]) == set()
    assert load_pending_positions(benchmark, world.host, [case.pk + 1]) == set()
    second = make_definition(world.alice, world.project, slug="second").benchmark
    assert load_pending_positions(second.pk, world.host, [case.pk]) == set()

    run = load_backfill_runs(Backfill.objects.get())[0]
    _measure(world, run)
    series = Series.objects.get(metric__key=RATE)
    assert load_pending_positions(benchmark, world.host, [case.pk]) == {30, 31}
    assert is_backfilled([series], commits[29], commits[30])
    assert is_backfilled([series], commits[31], commits[32])
    assert not is_backfilled([series], commits[28], commits[29])


@pytest.mark.parametrize("selector", ["profile:any", "tag:fast"])
def test_a_run_on_any_host_of_a_profile_or_tag_counts_until_it_has_one(
    world: World, selector: str
) -> None:
    other = make_local_host(world.alice, "other")
    Host.objects.update(tags=["fast"])
    other.refresh_from_db()
    world.host.refresh_from_db()
    backfill = _start(world, host=selector, count=1)
    case = world.benchmark.cases.get()
    hosts = (world.host, other)
    pending = [load_pending_positions(world.benchmark.pk, each, [case.pk]) for each in hosts]
    assert pending == [{32}, {32}]
    backfill.runs.get().jobs.update(host=other, state="measuring")
    pending = [load_pending_positions(world.benchmark.pk, each, [case.pk]) for each in hosts]
    assert pending == [set(), {32}]
