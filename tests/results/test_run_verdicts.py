"""Verdicts of runs that have ended are made once and kept."""

import pytest

from orchestrator.comparisons.run_verdicts import cards_of
from orchestrator.results.models import RunVerdict
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import run_for
from tests.support import factories


@pytest.fixture
def measured(personas, settings, tmp_path):
    """Makes a run of as many commits as there are rates, and returns it as lists read it."""
    settings.ALLOW_LOCAL_REPOSITORIES = True
    settings.DATA_DIR = tmp_path / "data"
    project, shas = factories.make_project(personas.alice, tmp_path / "repository")
    factories.make_definition(personas.alice, project)
    factories.make_local_host(personas.alice)

    def make(*rates):
        run = factories.make_run(personas.alice, shas[: len(rates)])
        return run_for(personas.alice, factories.finish_run(run, rates).pk)

    return make


def test_what_has_ended_is_made_once(personas, measured, django_assert_num_queries):
    run = measured(100, 200)
    first = cards_of(personas.alice, [run])[run.pk]
    assert [card.verdict for card in first] == ["improved"]
    again = run_for(personas.alice, run.pk)
    with django_assert_num_queries(1):
        assert cards_of(personas.alice, [again])[run.pk] == first


def test_what_goes_on_is_made_again_each_time(personas, measured):
    run = measured(100, 200)
    Run.objects.filter(pk=run.pk).update(state="running")
    cards_of(personas.alice, [run_for(personas.alice, run.pk)])
    assert not RunVerdict.objects.exists()


def test_a_run_of_one_commit_has_none(personas, measured):
    run = measured(100)
    assert cards_of(personas.alice, [run]) == {run.pk: []}
    assert RunVerdict.objects.get().cards == []
