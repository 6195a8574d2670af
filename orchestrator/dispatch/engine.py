"""Advancing one job by one step. Every step may be repeated: it is idempotent, or guarded.

`advance` takes the job's turn, does what the pure `plan` names, and gives the turn back:

1. PREPARE  connect; copy the agent; note the host's facts; send tool and sources
2. START    write the round's plan and leave the agent's supervisor behind
3. LOOK     read the journal from where we were; take in finished trials; see whether it ended
4. FINISH, or the next round's START; CANCEL at any time
"""

import logging
from uuid import UUID

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import HostError, PitwallError
from orchestrator.dispatch import intake
from orchestrator.dispatch.agent import Agent
from orchestrator.dispatch.plan import (
    MAX_ATTEMPTS,
    MAX_CONNECT_FAILURES,
    MAX_LOOK_FAILURES,
    Action,
    Step,
    after_round,
    backoff_s,
    next_action,
    reason_to_stop,
)
from orchestrator.dispatch.provision import provision
from orchestrator.dispatch.rounds import plan_of_round, step_id
from orchestrator.fleet.connect import connect
from orchestrator.fleet.services import note_host_error, note_host_seen
from orchestrator.runs import turns
from orchestrator.runs.models import Job, Run
from orchestrator.runs.states import JobState
from orchestrator.transport.base import Transport

logger = logging.getLogger(__name__)

#: Between two looks at a host that does not ask for quiet.
LOOK_S = 1.0


class InternalError(HostError):
    """A fault of our own: tried again like a host's, so that nothing hangs and nothing is lost."""

    transient = True


def advance(job_id: UUID) -> bool:
    """Takes the job one step further; False where there was nothing to do for us."""
    job = turns.take_turn(job_id)
    if job is None:
        return False
    try:
        _step(job)
    except turns.TurnLost:
        logger.info("job %s: another worker took over", job_id)
    return True


def _step(job: Job) -> None:
    cancelled = Run.objects.filter(pk=job.run_id, cancel_requested_at__isnull=False).exists()
    action = next_action(
        Step(state=job.state, step_started=job.step_started, cancel_requested=cancelled)
    )
    try:
        with connect(job.host) as transport:
            _ACTIONS[action](job, transport, Agent(transport, python=job.host.python))
    except HostError as error:
        _host_failed(job, action, error)
    except PitwallError as error:
        turns.end_job(job, JobState.FAILED, str(error))
    except turns.TurnLost:
        raise
    except Exception as error:
        logger.exception("job %s: %s failed", job.pk, action)
        _host_failed(job, action, InternalError(f"internal error, see the worker's log: {error}"))


def _prepare(job: Job, transport: Transport, agent: Agent) -> None:
    provision(job, transport, agent)
    first = job.trials.filter(state="planned").order_by("position").first()
    turns.move(
        job,
        JobState.MEASURING,
        phase="starting",
        round=first.round if first else 1,
        failures=0,
        step_started=False,
    )
    turns.give_back(job, look_in_s=0)


def _start(job: Job, transport: Transport, agent: Agent) -> None:
    transport.put(plan_of_round(job), f"jobs/{job.pk}/{step_id(job)}/plan.json")
    agent.start(str(job.pk), step_id(job))
    turns.change(job, step_started=True, journal_offset=0, failures=0)
    turns.give_back(job, look_in_s=LOOK_S)


def _look(job: Job, transport: Transport, agent: Agent) -> None:
    status = agent.status(str(job.pk), step_id(job), job.journal_offset)
    seen = intake.take_in(job, transport, status["events"])
    turns.change(job, journal_offset=status["offset"], failures=0, message="", **seen.changes)
    note_host_seen(host=job.host)
    if seen.round_done:
        _after_round(job)
    elif seen.aborted or not status["alive"]:
        _attempt_lost(job, seen.aborted or _why_dead(status))
    else:
        turns.give_back(job, look_in_s=max(LOOK_S, seen.quiet_s))


def _why_dead(status: dict[str, object]) -> str:
    return "it was killed, or the host restarted" if status["started"] else "it never started"


def _after_round(job: Job) -> None:
    reason = reason_to_stop(intake.failed_trials(job))
    if reason:
        turns.end_job(job, JobState.FAILED, reason)
        return
    left = job.trials.filter(state="planned").order_by("position")
    if after_round(planned_left=left.count()) is Action.FINISH:
        turns.end_job(job, JobState.FINISHED, "")
        return
    following = left.first()
    assert following is not None
    turns.change(job, round=following.round, step_started=False, journal_offset=0)
    turns.give_back(job, look_in_s=0)


def _attempt_lost(job: Job, reason: str) -> None:
    """The supervisor is gone in mid-round: what is still planned is tried again, with a cap."""
    if job.attempt >= MAX_ATTEMPTS:
        turns.end_job(
            job,
            JobState.FAILED,
            f"the agent on {job.host.name} ended {job.attempt} times before its round was over: "
            f"{reason}; see supervisor.log below {job.host.work_dir}/jobs/{job.pk} on the host",
        )
        return
    logger.warning("job %s: attempt %s lost: %s", job.pk, job.attempt, reason)
    turns.change(
        job,
        attempt=job.attempt + 1,
        step_started=False,
        journal_offset=0,
        current_trial=None,
        message=f"attempt {job.attempt} was lost: {reason}; trying again",
    )
    turns.give_back(job, look_in_s=LOOK_S)


def _cancel(job: Job, transport: Transport, agent: Agent) -> None:
    if job.step_started:
        agent.stop(str(job.pk), step_id(job))
        status = agent.status(str(job.pk), step_id(job), job.journal_offset)
        intake.take_in(job, transport, status["events"])
    turns.end_job(job, JobState.CANCELLED, "cancelled; what was measured until then is kept")


def _host_failed(job: Job, action: Action, error: HostError) -> None:
    """Transient failures are tried again after a while, with a cap; others end the job."""
    note_host_error(host=job.host, error=error)
    failures = job.failures + 1
    cap = MAX_LOOK_FAILURES if job.step_started else MAX_CONNECT_FAILURES
    if action is Action.CANCEL:
        message = f"cancelled; {job.host.name} could not be told ({error}) and stops by itself"
        turns.end_job(job, JobState.CANCELLED, message)
    elif not error.transient or failures >= cap:
        turns.end_job(job, JobState.FAILED, f"{job.host.name}: {error}")
    else:
        again = f"{error}; trying again ({failures} of {cap})"
        turns.change(job, failures=failures, message=again[:2000])
        turns.give_back(job, look_in_s=backoff_s(failures))
        logger.warning("job %s at %s: %s", job.pk, utc_now().isoformat(), again)


_ACTIONS = {
    Action.PREPARE: _prepare,
    Action.START: _start,
    Action.LOOK: _look,
    Action.CANCEL: _cancel,
}
