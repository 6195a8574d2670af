"""Verdicts of ended runs are stored by a task; reading them writes nothing."""

import pytest

from orchestrator.comparisons.models import RunVerdict
from orchestrator.comparisons.verdict_cache import load_verdict_cards, store_missing_verdicts
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_run
from tests.support.trials import BUSY, ERRORS, invalidate


@pytest.fixture
def measured(world):
    """Makes a run of as many commits as there are rates, and returns it as lists read it."""
    return lambda *rates: load_run(world.alice, world.measure_run(*rates).pk)


def test_the_verdict_of_an_ended_run_is_stored_once_and_read_in_one_query(
    personas, measured, django_assert_num_queries
):
    run = measured(100, 200)
    first = load_verdict_cards(personas.alice, [run])[run.pk]
    assert [card.verdict for card in first] == ["improved"]
    assert not RunVerdict.objects.exists()
    store_missing_verdicts()
    again = load_run(personas.alice, run.pk)
    with django_assert_num_queries(1):
        assert load_verdict_cards(personas.alice, [again])[run.pk] == first


def test_the_verdict_of_a_running_run_is_not_stored(personas, measured):
    run = measured(100, 200)
    Run.objects.filter(pk=run.pk).update(state="running")
    store_missing_verdicts()
    assert not RunVerdict.objects.exists()


def test_a_run_of_one_commit_has_no_cards(personas, measured):
    run = measured(100)
    store_missing_verdicts()
    assert load_verdict_cards(personas.alice, [run]) == {run.pk: []}
    assert RunVerdict.objects.get().cards == []


def test_a_run_without_a_usable_block_has_no_verdict(personas, world):
    run = invalidate(world.measure_run(100, 200), BUSY, variant__position=1)
    assert run.state == "finished"
    assert load_verdict_cards(personas.alice, [load_run(personas.alice, run.pk)]) == {run.pk: []}


@pytest.mark.parametrize(
    ("state", "verdicts"),
    [("finished", ["inconclusive"]), ("cancelled", ["inconclusive"]), ("failed", [])],
)
def test_a_failed_run_is_not_inconclusive(personas, world, state, verdicts):
    run = world.measure_run(100, 100.5, rounds=2)
    Run.objects.filter(pk=run.pk).update(state=state)
    cards = load_verdict_cards(personas.alice, [load_run(personas.alice, run.pk)])[run.pk]
    assert [card.verdict for card in cards] == verdicts


def test_a_failed_run_shows_a_regression_that_it_measured(personas, measured):
    run = measured(100, 50)
    Run.objects.filter(pk=run.pk).update(state="failed")
    cards = load_verdict_cards(personas.alice, [load_run(personas.alice, run.pk)])[run.pk]
    assert [card.verdict for card in cards] == ["regressed"]


def test_a_failed_run_shows_that_its_contender_is_broken(personas, world):
    run = invalidate(world.measure_run(100, 100), ERRORS, variant__position=1)
    Run.objects.filter(pk=run.pk).update(state="failed")
    cards = load_verdict_cards(personas.alice, [load_run(personas.alice, run.pk)])[run.pk]
    assert [card.verdict for card in cards] == ["broken"]
