"""Which rounds of a job are measured with one plan."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.runs import step_rounds
from orchestrator.runs.models import Job
from orchestrator.runs.step_rounds import LONGEST_S, list_step_rounds
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

pytestmark = pytest.mark.django_db


def make_job(
    personas: Personas, folder: Path, *, current: int, trial_s: float, **request: Any
) -> Job:
    """A job of 7 rounds with 2 trials each, whose current round is given."""
    project, shas = make_project(personas.alice, folder / "origin")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    run = make_run(personas.alice, shas[:2], **{"rounds": 7, **request})
    job = run.jobs.get()
    job.trials.update(expected_s=trial_s)
    job.round = current
    return job


@pytest.mark.parametrize(
    ("current", "trial_s", "rounds"),
    [
        (1, 1.0, [1]),
        (2, 1.0, [2, 3, 4, 5, 6, 7]),
        (2, LONGEST_S / 6, [2, 3, 4]),
        (5, LONGEST_S / 6, [5, 6, 7]),
        (2, LONGEST_S, [2]),
        (7, 1.0, [7]),
    ],
)
def test_short_rounds_after_the_first_are_combined(
    personas: Personas, data_dir: Path, tmp_path: Path, current: int, trial_s: float,
    rounds: list[int],
) -> None:  # fmt: skip
    job = make_job(personas, tmp_path, current=current, trial_s=trial_s)
    assert list(list_step_rounds(job)) == rounds


def test_ended_trials_change_nothing(personas: Personas, data_dir: Path, tmp_path: Path) -> None:
    job = make_job(personas, tmp_path, current=2, trial_s=LONGEST_S / 6)
    job.trials.filter(round__in=[2, 3]).update(state="measured", validity="valid")
    assert list(list_step_rounds(job)) == [2, 3, 4]


@pytest.mark.parametrize(
    "request_",
    [{"until": "decided", "rounds": 20}, {"budget_s": 3600.0}],
)
def test_a_round_that_decides_about_the_next_one_is_alone(
    personas: Personas, data_dir: Path, tmp_path: Path, request_: dict[str, Any]
) -> None:
    job = make_job(personas, tmp_path, current=2, trial_s=1.0, **request_)
    assert list(list_step_rounds(job)) == [2]


def test_rounds_of_several_builds_are_alone(
    personas: Personas, data_dir: Path, tmp_path: Path
) -> None:
    job = make_job(personas, tmp_path, current=2, trial_s=1.0)
    job.run.builds = 2
    assert list(list_step_rounds(job)) == [2]


def test_nothing_is_combined_beyond_the_limit(
    personas: Personas, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_rounds, "LONGEST_S", 0.0)
    job = make_job(personas, tmp_path, current=2, trial_s=1.0)
    assert list(list_step_rounds(job)) == [2]
