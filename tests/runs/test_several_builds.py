"""How often a run builds each commit."""

from collections import Counter
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Run
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.rerun import request_again
from orchestrator.runs.trial_order import (
    KEPT_BUILD,
    count_usable_builds,
    number_build,
    order_trials,
)
from tests.support.factories import DEFINITION, Personas, make_run
from tests.support.world import World

BUILT = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")


@pytest.fixture
def world(personas: Personas, tmp_path: Path) -> World:
    return World.make(personas, tmp_path, source=BUILT.replace("rounds: 5", "rounds: 9\nbuilds: 4"))


def plan(world: World, **changes: object) -> RunPlan:
    request = RunRequest(
        benchmark="hello", hosts=("here",), baseline=world.shas[0], contenders=(world.shas[1],),
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip
    return plan_run(member=world.alice, request=request)


def test_one_build_is_the_one_that_the_host_keeps() -> None:
    assert {number_build(number, 1) for number in range(1, 20)} == {KEPT_BUILD}


@pytest.mark.parametrize(("rounds", "builds"), [(5, 3), (10, 5), (20, 5), (20, 10), (12, 4)])
def test_rounds_are_spread_evenly_over_the_builds(rounds: int, builds: int) -> None:
    numbers = [number_build(number, builds) for number in range(1, rounds + 1)]
    counts = Counter(numbers)
    assert set(counts) == set(range(1, builds + 1))
    assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_each_build_has_both_orders_of_the_trials(seed: int) -> None:
    firsts = [slot.variant for slot in order_trials(1, 2, 20, seed)[::2]]
    of_build = Counter((number_build(at, 5), first) for at, first in enumerate(firsts, 1))
    assert set(of_build.values()) == {2}


def test_the_definition_has_the_default_which_fewer_rounds_reduce(world: World) -> None:
    assert plan(world).builds == 4
    assert plan(world, rounds=5).builds == count_usable_builds(5) == 3
    assert plan(world, builds=1).builds == 1
    run = make_run(world.alice, world.shas[:2], builds=5)
    assert (run.builds, request_again(run).builds) == (5, 5)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"builds": 0}, "expected 1 to 10 builds, got 0"),
        ({"builds": 11}, "expected 1 to 10 builds, got 11"),
        ({"builds": 4, "rounds": 5}, "5 rounds can measure at most 3 builds, two rounds each"),
    ],
)
def test_a_number_that_cannot_be_measured_is_refused(
    world: World, changes: dict[str, int], problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as raised:
        plan(world, **changes)
    assert raised.value.field == "builds"


def test_few_builds_give_a_warning(world: World) -> None:
    assert "4 builds say little about the difference between builds; 5 or more are better" in (
        plan(world).warnings
    )
    for builds in (1, 5):
        assert not any("builds" in each for each in plan(world, builds=builds).warnings)


def test_without_build_steps_there_is_nothing_to_build_again(
    personas: Personas, tmp_path: Path
) -> None:
    world = World.make(personas, tmp_path)
    assert plan(world, builds=1).builds == 1
    with pytest.raises(InvalidRequestError, match="has no build steps") as raised:
        plan(world, builds=3)
    assert raised.value.field == "builds"
    with pytest.raises(InvalidRequestError, match=r"subject\.build") as raised:
        parse(DEFINITION + "builds: 3\n")
    assert "builds" in str(raised.value)
    with pytest.raises(InvalidRequestError, match="10"):
        parse(BUILT + "builds: 11\n")


def test_build_steps_of_an_option_are_enough() -> None:
    options = 'options: {connections: {"4": {subject: {build: [[make]]}}}}\n'
    assert parse(DEFINITION + options + "builds: 3\n").builds == 3


def test_the_database_refuses_other_numbers(world: World) -> None:
    run = make_run(world.alice, world.shas[:2])
    for builds in (0, 11):
        with pytest.raises(IntegrityError, match="run_builds_in_range"), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(builds=builds)
