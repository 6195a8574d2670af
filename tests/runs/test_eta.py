"""How long a run still takes, where it has several jobs."""

from pathlib import Path

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.runs import leasing
from orchestrator.runs.eta import estimate_start_s
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_progress
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_local_host,
    make_run,
)
from tests.support.world import World

#: Two cases, each so long that it is a job of its own.
LONG = DEFINITION.replace("connections: [4]", "connections: [4, 8]").replace(
    "duration_s: 0.6", "duration_s: 100"
)
#: Warm-up, load and the overhead of a trial; two commits in five rounds.
CASE_S = (0.2 + 100 + 1.0) * 2 * 5

pytestmark = pytest.mark.django_db


@pytest.fixture
def shas(personas: Personas, data_dir: Path, tmp_path: Path) -> list[str]:
    world = World.make(personas, tmp_path, source=LONG)
    make_local_host(personas.alice, "there")
    return world.shas[:2]


def left_s(run: Run) -> float | None:
    return load_progress(run).seconds_left


def test_jobs_of_one_host_add_up(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas)
    assert run.jobs.count() == 2
    assert left_s(run) == pytest.approx(2 * CASE_S)
    run.jobs.filter(pk=run.jobs.all()[0].pk).update(state="finished")
    assert left_s(run) == pytest.approx(CASE_S)


def test_jobs_of_two_hosts_run_in_parallel(personas: Personas, shas: list[str]) -> None:
    assert left_s(make_run(personas.alice, shas, hosts=("here", "there"))) == pytest.approx(
        2 * CASE_S
    )


def test_jobs_without_a_host_are_counted_in_parallel(personas: Personas, shas: list[str]) -> None:
    assert left_s(make_run(personas.alice, shas, hosts=("profile:any",))) == pytest.approx(CASE_S)


def test_an_ended_run_has_no_remaining_time(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas)
    run.jobs.update(state="cancelled")
    run.state = "cancelled"
    assert left_s(run) is None


def start_s(run: Run) -> float | None:
    return estimate_start_s(load_progress(run), utc_now())


def test_the_start_of_a_run_follows_the_work_before_it(personas: Personas, shas: list[str]) -> None:
    first, second = make_run(personas.alice, shas), make_run(personas.alice, shas)
    assert (start_s(first), start_s(second)) == (0.0, pytest.approx(2 * CASE_S))
    leasing.lease_queued_jobs()
    # One job of the first run has the host, the other one is still queued before the second run.
    assert (start_s(first), start_s(second)) == (0.0, pytest.approx(2 * CASE_S))
    urgent = make_run(personas.alice, shas, priority="high")
    assert start_s(urgent) == pytest.approx(CASE_S)


def test_an_ended_run_has_no_start(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas)
    run.jobs.update(state="cancelled")
    assert start_s(run) is None
