"""The end of an attempt of a job: the job ends, or returns to the queue for the next attempt."""

import contextlib
import logging

from orchestrator.core.errors import (
    HostBusyError,
    HostError,
    HostKeyMismatchError,
    LoginRefusedError,
    UnreachableError,
)
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.plan import (
    MAX_ATTEMPTS,
    MAX_CONNECT_FAILURES,
    MAX_POLL_FAILURES,
    MOST_ABSENCES,
    STOP_S,
    Action,
    compute_backoff_s,
    retry_s,
)
from orchestrator.dispatch.rounds import build_step_id, load_silence_s
from orchestrator.fleet.absence import load_absence_s, load_least_pause_s
from orchestrator.fleet.host_settings import quarantine
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
    "peer_lost": "the connection to another host of the job was lost",
}
MAX_INTERRUPTIONS = 20
#: Errors of a host that is absent: off, asleep, or no longer at its address.
ABSENCES = (UnreachableError, HostKeyMismatchError, LoginRefusedError)
#: A process on the host does not end, so a person has to look at it.
UNKILLABLE = "unkillable"
#: The files of the job exceed the disk limit of the host, as they would again.
DISK_LIMIT = "disk_limit"
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
    if code == UNKILLABLE:
        quarantine(host=host, reason=reason)
        avoid = [*avoid, host]
    if code == DISK_LIMIT:
        if not claims.has_other_hosts(job, host):
            return end_job(job, job_hosts, JobState.FAILED, reason)
        avoid = [*avoid, host]
    if code in INTERRUPTIONS and job.interruptions < MAX_INTERRUPTIONS:
        stop_everywhere(job, job_hosts)
        message = f"the round was interrupted: {INTERRUPTIONS[code]} on {host.name}; it continues"
        _interrupt(job, message)
        return None
    return try_again(job, job_hosts, reason, avoid=avoid)


def _interrupt(job: Job, message: str) -> None:
    logger.info("job %s: %s", job.pk, message)
    claims.interrupt_job(job, message)


def wait_in_queue(job: Job, job_hosts: JobHosts, reason: str) -> None:
    """Return the job to the queue for a while: neither the job nor a host has failed.

    For example, the disk of the server is full.
    """
    stop_everywhere(job, job_hosts)
    _end_attempt(job, reason, avoid=[], wait_s=NOT_READY_PAUSE_S)


def wait_for_busy_host(job: Job, job_hosts: JobHosts, error: HostBusyError) -> None:
    """Return the job to the queue while others use a host; it keeps its attempt."""
    host = job_hosts.last or job_hosts.lead
    stop_everywhere(job, job_hosts)
    claims.wait_for_busy_host(job, f"{host.name}: {error}", wait_s=error.wait_s)


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
    """Stop the job's round on each host that can be reached; return these hosts.

    A host where something does not end is quarantined: the next job would find it there.
    """
    reached = []
    job_hosts.claim.begin("ending the round", STOP_S)
    started = job.step_started or job.followers_started
    for host in job_hosts.hosts:
        with contextlib.suppress(HostError), job_hosts.open_session(host) as session:
            left = session.agent.stop(str(job.pk), build_step_id(job)) if started else ""
            if left:
                quarantine(host=host, reason=f"after the end of a round, {left}")
            reached.append(host)
    return reached


def handle_host_error(job: Job, job_hosts: JobHosts, error: HostError) -> float | None:
    """Retry transient failures, first in place, then from the queue; others end the job.

    An absent host is no failure: the job waits for it.
    """
    host = job_hosts.last or job_hosts.lead
    record_host_error(host=host, error=error)
    if isinstance(error, ABSENCES):
        return _wait_for_absent_host(job, job_hosts, host, error)
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


def _wait_for_absent_host(
    job: Job, job_hosts: JobHosts, host: Host, error: HostError
) -> float | None:
    """Wait for an absent host: in place as long as its agent continues the round, then queued.

    Before a round it costs nothing. In a round it is an interruption, whose number is limited.
    """
    in_round = job.step_started or job.followers_started
    if in_round and error.transient and load_absence_s(host) <= load_silence_s(job):
        message = f"{host.name}: {error} The agent continues, and Pitwall waits for it."
        claims.update_job(job, message=message[:2000])
        failures = min(max(1, job.failures), MOST_ABSENCES)
        pause_s = max(compute_backoff_s(failures), load_least_pause_s(host))
        return claims.release_claim(job, poll_in_s=pause_s, failures=failures)
    message = f"{host.name}: {error} The job waits for it."
    if not in_round and not job_hosts.reached_last:
        logger.info("job %s: %s", job.pk, message)
        claims.wait_for_absent_host(job, message)
        return None
    if job.interruptions >= MAX_INTERRUPTIONS:
        return try_again(job, job_hosts, f"{host.name}: {error}", avoid=[host])
    if in_round:
        stop_everywhere(job, job_hosts)
    _interrupt(job, message)
    return None


def get_failure_limit(job: Job) -> int:
    return MAX_POLL_FAILURES if job.step_started else MAX_CONNECT_FAILURES
