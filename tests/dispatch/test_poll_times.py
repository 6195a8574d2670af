"""When the engine polls a real host during its rounds, and how often it starts the agent."""

from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.runs import step_rounds
from orchestrator.runs.states import JobState, TrialState
from tests.dispatch.support import finish, make_job_over_ssh
from tests.support.engine import server
from tests.support.factories import DEFINITION
from tests.support.journals import StepJournal, read_journals
from tests.support.sshd import SshServer


def get_first_trial(journal: StepJournal) -> tuple[float, float]:
    """Return the times of the start and the end of the first trial of a round."""
    began, ended = (
        next(event["t"] for event in journal.events if event["event"] == name)
        for name in ("trial_started", "trial_done")
    )
    return began, ended


def count_steps_in_first_trial(journal: StepJournal, steps: list[float]) -> int:
    """Return how many steps began between the start of a round's first trial and its end."""
    began, ended = get_first_trial(journal)
    return sum(began < step < ended for step in steps)


@pytest.mark.quiet
@pytest.mark.usefixtures("transactional_db", "data_dir")
def test_a_round_is_first_polled_when_its_first_trial_has_ended(
    machine: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_rounds, "LONGEST_S", 0.0)
    job = make_job_over_ssh(machine, tmp_path, rounds=4)
    steps = finish(job)
    job.refresh_from_db()
    assert job.state == JobState.FINISHED, job.message
    first, *later = read_journals(machine.work_dir)
    # The agent announces the first trial of a job after the builds.
    assert count_steps_in_first_trial(first, steps) == 0
    # A trial may take longer than expected on a busy machine, but hardly three times in a row.
    assert 0 in [count_steps_in_first_trial(journal, steps) for journal in later]


@pytest.mark.usefixtures("transactional_db", "data_dir")
def test_short_rounds_are_measured_with_one_start_of_the_agent(
    machine: SshServer, tmp_path: Path
) -> None:
    job = make_job_over_ssh(machine, tmp_path, rounds=4)
    finish(job)
    job.refresh_from_db()
    assert job.state == JobState.FINISHED, job.message
    assert [trial.state for trial in job.trials.all()] == ["measured"] * 8
    journals = read_journals(machine.work_dir)
    measured = [
        [e["trial"] for e in each.events if e["event"] == "trial_done"] for each in journals
    ]
    order = [str(pk) for pk in job.trials.order_by("position").values_list("pk", flat=True)]
    assert measured == [order[:2], order[2:]]


@pytest.mark.usefixtures("transactional_db", "data_dir")
def test_a_trial_is_polled_less_often_the_longer_it_is_overdue(
    machine: SshServer, tmp_path: Path
) -> None:
    # Planned for a fifth of a second, but each request takes longer than a tenth of a second.
    counted = DEFINITION.replace("duration_s: 0.6", "requests: 200").replace(
        "warmup_s: 0.2", "warmup_s: 0"
    )
    slow = [server(wait_s=0.12)]
    job = make_job_over_ssh(machine, tmp_path, rounds=1, source=counted, commits=slow)
    steps = finish(job)
    # Other tests may use too much CPU for a valid trial.
    assert job.trials.get().state == TrialState.MEASURED
    (journal,) = read_journals(machine.work_dir)
    began, ended = get_first_trial(journal)
    assert ended - began > 6
    pauses = [
        later - earlier
        for earlier, later in pairwise(step for step in steps if began < step < ended)
    ]
    assert count_steps_in_first_trial(journal, steps) <= 7, pauses
    assert max(pauses) > 1
