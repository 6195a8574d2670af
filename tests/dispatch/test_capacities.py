"""The capacity of the baseline replaces the searches of later rounds."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.capacity_rates import compute_share_rates
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.dispatch.capacities import load_capacities, measure_at_shares
from orchestrator.dispatch.stage import resolve_cases
from orchestrator.runs.models import Job, Run, Trial
from tests.support.factories import DEFINITION, Personas, record_trial
from tests.support.world import World

pytestmark = pytest.mark.django_db


SOURCE = DEFINITION.replace("[4]", "[4, 8]").replace(
    "duration_s: 0.6", 'search: {objective: "p50 < 50 ms", probe_s: 1}'
)


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> World:
    return World.make(personas, tmp_path, source=SOURCE)


def store(run: Run, connections: int, capacity: float | None, **which: object) -> None:
    """Store the result of a search of the baseline in the first round; `which` changes that."""
    place = {"round": 1, "variant__position": 0, "case__parameters__connections": connections}
    trial = Trial.objects.get(job__run=run, **{**place, **which})
    record_trial(trial, {} if capacity is None else {"capacity.rate": capacity})
    Trial.objects.filter(pk=trial.pk).update(
        state="measured", validity="suspect" if capacity else "invalid", host=trial.job.host_id
    )


def get_job(run: Run, number: int) -> Job:
    """The job of a run, in this round."""
    job = run.jobs.get()
    job.round = number
    return job


def begin(world: World, *places: int) -> Run:
    run = world.queue_run(*places, rounds=2)
    run.jobs.update(host=world.host)
    return run


def list_cases(job: Job) -> dict[int, int]:
    """Connections → case."""
    cases = {trial.case for trial in job.trials.select_related("case")}
    return {case.parameters["connections"]: case.pk for case in cases}


def test_the_first_capacity_of_the_baseline_counts_from_the_next_round_on(world: World) -> None:
    run = begin(world)
    store(run, 4, 1000)
    store(run, 4, 1300, variant__position=1)
    store(run, 4, 1100, round=2)
    store(run, 8, None)
    cases = list_cases(get_job(run, 1))
    assert load_capacities(get_job(run, 1)) == {}
    assert load_capacities(get_job(run, 2)) == {cases[4]: 1000}
    # A search without a result is repeated, and then counts.
    store(run, 8, 500, round=2)
    assert load_capacities(get_job(run, 3)) == {cases[4]: 1000, cases[8]: 500}


def test_a_capacity_of_another_host_does_not_count(world: World) -> None:
    run = begin(world)
    store(run, 4, 1000)
    Trial.objects.filter(job__run=run, round=1).update(host=None)
    assert load_capacities(get_job(run, 2)) == {}


def test_a_run_of_one_commit_repeats_its_search(world: World) -> None:
    run = begin(world, 0)
    store(run, 4, 1000)
    assert load_capacities(get_job(run, 2)) == {}


def test_only_cases_with_a_known_capacity_are_measured_at_shares(world: World) -> None:
    run = begin(world)
    job = get_job(run, 2)
    cases = list_cases(job)
    specs = resolve_cases(read_spec(run.definition), {trial.case for trial in job.trials.all()})
    replaced = measure_at_shares(specs, {cases[4]: 1000})
    assert replaced[cases[8]] is specs[cases[8]]
    load = replaced[cases[4]].load
    assert load.search is None
    assert load.steps is not None
    assert tuple(step.rate for step in load.steps) == compute_share_rates(1000) == (500, 800, 950)
