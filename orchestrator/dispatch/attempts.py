"""The end of an attempt of a job: the job ends, or returns to the queue for the next attempt."""

import contextlib
import logging

from orchestrator.core.errors import HostError
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.plan import (
    MAX_ATTEMPTS,
    MAX_CONNECT_FAILURES,
    MAX_POLL_FAILURES,
    STOP_S,
    Action,
    compute_backoff_s,
    retry_s,
)
from orchestrator.dispatch.rounds import build_step_id
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_host_error
from orchestrator.runs import claims
from orchestrator.runs.models import Job
from orchestrator.runs.states import JOB_COMPLETED, JobState

logger = logging.getLogger(__name__)

#: Codes of `aborted` events that are no failure (agents/hostagent/protocol.py), and their meaning.
INTERRUPTIONS = {
    "stopped": "the agent was stopped",
    "silence": "the agent ended because it was not polled",
}
MAX_INTERRUPTIONS = 20
#: If the server itself is not ready, each attempt waits this long in the queue.
NOT_READY_PAUSE_S = 600.0


def lose_attempt(job: Job, action: Action) -> None:
    """Lose the attempt after several workers in a row ended during the same step.

    The hosts are not contacted, since that may be what ends the workers; their processes stop by
    themselves.
    """
    if action == Action.CANCEL:
        claims.end_job(job, JobState.CANCELLED, "cancelled; the hosts could not be reached")
        return
    reason = f"{job.failures - 1} workers in a row ended in the middle of the step {action!r}"
    _end_attempt(job, reason, avoid=[])


def end_job(job: Job, job_hosts: JobHosts, state: JobState, message: str) -> float | None:
    """End the job. The round on its hosts has ended, or is stopped now."""
    if state not in JOB_COMPLETED:
        stop_everywhere(job, job_hosts)
    claims.end_job(job, state, message)
    return None


def try_again(
    job: Job, job_hosts: JobHosts, reason: str, *, avoid: list[Host] | None = None
) -> float | None:
    """Start the next attempt, up to a limit, after a failure of hosts."""
    stop_everywhere(job, job_hosts)
    _end_attempt(job, reason, avoid=avoid or [])
    return None


def end_early(
    job: Job, job_hosts: JobHosts, host: Host, reason: str, *, code: str, avoid: list[Host]
) -> float | None:
    """Continue after a round that ended early on a host, by the code of its `aborted` event.

    It costs no attempt if the agent was stopped or nobody polled it, as while Pitwall is stopped or
    restarted. The number of such interruptions is limited, because the host reports the code.
    """
    if code in INTERRUPTIONS and job.interruptions < MAX_INTERRUPTIONS:
        stop_everywhere(job, job_hosts)
        message = f"the round was interrupted: {INTERRUPTIONS[code]} on {host.name}; it continues"
        logger.info("job %s: %s", job.pk, message)
        claims.interrupt_job(job, message)
        return None
    return try_again(job, job_hosts, reason, avoid=avoid)


def wait_in_queue(job: Job, job_hosts: JobHosts, reason: str) -> None:
    """Return the job to the queue for a while: neither the job nor a host has failed.

    For example, the disk of the server is full.
    """
    stop_everywhere(job, job_hosts)
    _end_attempt(job, reason, avoid=[], wait_s=NOT_READY_PAUSE_S)


def _end_attempt(job: Job, reason: str, *, avoid: list[Host], wait_s: float | None = None) -> None:
    if job.attempt >= MAX_ATTEMPTS:
        message = f"failed after {job.attempt} attempts; the last: {reason}"
        claims.end_job(job, JobState.FAILED, message)
        return
    wait_s = retry_s(job.attempt) if wait_s is None else wait_s
    logger.warning("job %s: attempt %s lost: %s", job.pk, job.attempt, reason)
    claims.requeue_job(
        job,
        f"attempt {job.attempt} of {MAX_ATTEMPTS} was lost: {reason}; trying again",
        wait_s=wait_s,
        avoid=[host.pk for host in avoid],
    )


def stop_everywhere(job: Job, job_hosts: JobHosts) -> list[Host]:
    """Stop the job's round on each host that can be reached; return these hosts."""
    reached = []
    job_hosts.claim.begin("ending the round", STOP_S)
    started = job.step_started or job.followers_started
    for host in job_hosts.hosts:
        with contextlib.suppress(HostError), job_hosts.open_session(host) as session:
            if started:
                session.agent.stop(str(job.pk), build_step_id(job))
            reached.append(host)
    return reached


def handle_host_error(job: Job, job_hosts: JobHosts, error: HostError) -> float | None:
    """Retry transient failures, first in place, then from the queue; others end the job."""
    host = job_hosts.last or job_hosts.lead
    record_host_error(host=host, error=error)
    # At least this one: events stored before the error were progress and reset the count.
    failures = max(1, job.failures)
    cap = get_failure_limit(job)
    if error.transient and failures < cap:
        again = f"{host.name}: {error}; trying again ({failures} of {cap})"
        claims.update_job(job, message=again[:2000])
        logger.warning("job %s: %s", job.pk, again)
        return claims.release_claim(job, poll_in_s=compute_backoff_s(failures), failures=failures)
    if error.transient or claims.has_other_hosts(job, host):
        return try_again(job, job_hosts, f"{host.name}: {error}", avoid=[host])
    return end_job(job, job_hosts, JobState.FAILED, f"{host.name}: {error}")


def get_failure_limit(job: Job) -> int:
    return MAX_POLL_FAILURES if job.step_started else MAX_CONNECT_FAILURES
