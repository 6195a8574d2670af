"""Results that an agent delivers after their job ended."""

from collections.abc import Callable

import pytest

from orchestrator.comparisons.models import RunVerdict
from orchestrator.comparisons.verdict_cache import store_missing_verdicts
from orchestrator.measurements.services import fail_trial, store_trial
from orchestrator.runs import cancelling, claims, leasing
from orchestrator.runs.models import Run
from orchestrator.runs.states import JobState
from tests.support.world import World


def fail_job(world: World, run: Run) -> None:
    leasing.lease_queued_jobs()
    job = claims.claim_job(run.jobs.get().pk)
    assert job is not None
    claims.end_job(job, JobState.FAILED, "the server did not start")


def cancel_run(world: World, run: Run) -> None:
    cancelling.cancel_run(member=world.alice, run_id=run.pk)


@pytest.mark.parametrize("end", [fail_job, cancel_run])
def test_a_late_result_changes_neither_the_trials_nor_the_verdict_of_an_ended_run(
    world: World, end: Callable[[World, Run], None]
) -> None:
    run = world.queue_run(rounds=2)
    end(world, run)
    store_missing_verdicts()
    cards = RunVerdict.objects.get(run=run).cards
    job = run.jobs.get()
    trials = list(job.trials.order_by("pk"))
    assert {trial.state for trial in trials} == {"skipped"}
    for trial in trials:
        assert not store_trial(trial=trial, job=job, files={}, late=True)
        assert not fail_trial(trial=trial, job=job, code="tool_failed", message="late", files={})
    assert list(job.trials.order_by("pk").values_list("state", "attempt")) == [
        (trial.state, trial.attempt) for trial in trials
    ]
    assert RunVerdict.objects.get(run=run).cards == cards
