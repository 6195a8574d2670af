"""The state of a run, derived from the states of its jobs."""

import uuid

from orchestrator.core.clock import utc_now
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED, JobState, RunState, derive_run_state


def sync_run_state(run_id: uuid.UUID) -> None:
    """Update a run's state, message and times from its jobs."""
    run = Run.objects.select_for_update().get(pk=run_id)
    if run.state in RUN_ENDED:
        return
    jobs = list(run.jobs.all())
    state = derive_run_state(
        [JobState(job.state) for job in jobs], cancelled=run.cancel_requested_at is not None
    )
    run.state = state
    if state != RunState.QUEUED and run.started_at is None:
        run.started_at = utc_now()
    if state in RUN_ENDED:
        run.ended_at = utc_now()
        # A run that was cancelled may already have the reason.
        messages = [run.message, *(job.message for job in jobs)]
        run.message = "\n".join(each for each in messages if each)[:4000]
    run.save(update_fields=["state", "started_at", "ended_at", "message"])
