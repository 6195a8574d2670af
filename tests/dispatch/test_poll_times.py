"""When the engine polls a real host during its rounds."""

import time
from pathlib import Path

import pytest

from orchestrator.dispatch import engine
from orchestrator.runs import leasing
from orchestrator.runs.models import Job
from orchestrator.runs.states import JOB_ENDED, JobState
from tests.dispatch.support import make_job_over_ssh
from tests.support.journals import StepJournal, read_journals
from tests.support.sshd import SshServer


def finish(job: Job) -> list[float]:
    """Advance the job to its end as a worker does; return the times of its steps."""
    assert leasing.lease_queued_jobs() == [job.pk]
    steps = []
    deadline = time.monotonic() + 60
    while Job.objects.get(pk=job.pk).state not in JOB_ENDED:
        assert time.monotonic() < deadline
        steps.append(time.time())
        result = engine.advance(job.pk)
        time.sleep(result.wait_s or 0)
    return steps


def count_steps_in_first_trial(journal: StepJournal, steps: list[float]) -> int:
    """Return how many steps began between the start of a round's first trial and its end."""
    began, ended = (
        next(event["t"] for event in journal.events if event["event"] == name)
        for name in ("trial_started", "trial_done")
    )
    return sum(began < step < ended for step in steps)


@pytest.mark.quiet
@pytest.mark.usefixtures("transactional_db", "data_dir")
def test_a_later_round_is_first_polled_when_its_first_trial_has_ended(
    machine: SshServer, tmp_path: Path
) -> None:
    job = make_job_over_ssh(machine, tmp_path, rounds=4)
    steps = finish(job)
    job.refresh_from_db()
    assert job.state == JobState.FINISHED, job.message
    first, *later = read_journals(machine.work_dir)
    # Nothing is known about the first trial of a job.
    assert count_steps_in_first_trial(first, steps)
    # A trial may take longer than expected on a busy machine, but hardly three times in a row.
    assert 0 in [count_steps_in_first_trial(journal, steps) for journal in later]
