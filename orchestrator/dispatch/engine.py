"""Advances one job by one step. Every step may be repeated: it is idempotent, or guarded.

`advance` takes the job's claim, executes the action that the pure `plan` selects, and releases the
claim:

1. PREPARE: on each host copy the agent, stop orphans and store the facts. Then mark what these
   hosts cannot measure, and send tools and commits for the rest.
2. START_FOLLOWERS, with several hosts: their supervisors build, and wait for the lead.
3. START: write the plan of a round, or of several short ones (`step_rounds.py`), and start the
   supervisor of the lead.
4. POLL: read the new part of the lead's journal, and store finished trials.
5. FINISH, or START of the next rounds. CANCEL is possible at any time. Cancelled cases are dropped
   from the current rounds. Between two plans, cases that would only fail again are skipped, and
   decided cases end if the run asks for that.

A step counts as failed before it is tried, so a worker that dies during it is counted as well; a
successful step resets the count. Each step has a deadline (`STEP_S`), until which a heartbeat
renews the claim. The job itself has one, too (`deadlines.py`).

When a host fails, the job returns to the queue with its next attempt (`attempts.py`): its leases
are released, and its results are kept.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DatabaseError, DataError

from agents.hostagent.protocol import POLL_S
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import FetchRunningError
from orchestrator.core.errors import HostBusyError, HostError, NotReadyError, PitwallError
from orchestrator.core.heartbeat import HEARTBEAT, Claim, ClaimLost
from orchestrator.core.logs import logging_about
from orchestrator.core.spans import mark_span, span
from orchestrator.database.clock import read_database_time
from orchestrator.dispatch import (
    builds,
    contest_analyses,
    intake,
    interim,
    outcomes,
    unsupported_cases,
)
from orchestrator.dispatch.attempts import (
    UNKILLABLE,
    end_early,
    end_job,
    get_failure_limit,
    handle_host_error,
    lose_attempt,
    stop_everywhere,
    try_again,
    wait_for_busy_host,
    wait_in_queue,
)
from orchestrator.dispatch.deadlines import describe_overdue, describe_standstill
from orchestrator.dispatch.job_hosts import HostSession, JobHosts
from orchestrator.dispatch.local_loads import announce_local_load
from orchestrator.dispatch.plan import (
    STEP_S,
    Action,
    Step,
    choose_action,
)
from orchestrator.dispatch.poll_times import compute_first_poll_s, compute_poll_pause_s
from orchestrator.dispatch.provision import inspect_host, provision_host
from orchestrator.dispatch.round_secrets import open_round_secrets
from orchestrator.dispatch.rounds import (
    build_round_plans,
    build_step_id,
    drop_cancelled,
    list_earlier_step_ids,
    send_end_of_wait,
)
from orchestrator.dispatch.shares import SHARES
from orchestrator.fleet.identities import require_separate_machines
from orchestrator.fleet.models import Host, HostTransport
from orchestrator.fleet.services import record_host_seen
from orchestrator.runs import budgets, cancelling, claims
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.quiet_wait import PAUSE_S, WAITING_PHASE, describe_pause
from orchestrator.runs.states import JobState
from orchestrator.runs.step_rounds import list_step_rounds

logger = logging.getLogger(__name__)

#: Seconds between two polls of a lost mirror that is being fetched again.
FETCH_POLL_S = 2.0
#: A job keeps its hosts for this time while no worker runs that fetch.
FETCH_PATIENCE_S = 1800.0
#: Seconds until the next poll of a job whose team uses its share of the threads.
SHARE_S = 1.0
#: The result of a step that keeps the claim, since the next step follows immediately.
AT_ONCE = -1.0


class InternalError(HostError):
    """An error in Pitwall: it is retried like a host's, so that nothing hangs and nothing is
    lost."""

    transient = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """`wait_s`: seconds until the job wants its next step; None if the caller need not wake it.

    `left_hosts`: the job has ended or returned to the queue, so its hosts are free.
    """

    wait_s: float | None = None
    left_hosts: bool = False


def advance(job_id: UUID) -> StepResult:
    """Take the job one step further, if it is due and no other worker has it."""
    since = time.monotonic()
    job = claims.claim_job(job_id)
    if job is None:
        return StepResult()
    with logging_about(run=job.run_id, job=job.pk):
        mark_span()
        try:
            wait_s = _run_admitted(job, since)
        except ClaimLost:
            logger.info("job %s: another worker took over", job_id)
            return StepResult()
    return StepResult(wait_s=wait_s, left_hosts=wait_s is None)


def _run_admitted(job: Job, since: float) -> float | None:
    """Run steps, unless the team uses its share of the threads; None if the job left its hosts."""
    with SHARES.admit(job.run.team_id) as admitted:
        if not admitted:
            return claims.release_claim(job, poll_in_s=SHARE_S, failures=job.failures - 1)
        with HEARTBEAT.keeping(claims.build_claim(job, since=since)) as claim:
            return _run_steps(job, claim)


def _run_steps(job: Job, claim: Claim) -> float | None:
    wait_s = _run_step(job, claim)
    while wait_s == AT_ONCE:
        claims.begin_next_step(job)
        wait_s = _run_step(job, claim)
    return wait_s


def _run_step(job: Job, claim: Claim) -> float | None:
    job_hosts = JobHosts(job, claim)
    action = choose_action(
        Step(
            state=job.state,
            step_started=job.step_started,
            cancel_requested=cancelling.is_cancelled(job),
            has_followers=bool(job_hosts.followers),
            followers_started=job.followers_started,
        )
    )
    if job.failures > get_failure_limit(job):
        lose_attempt(job, action)
        return None
    if action != Action.CANCEL and (overdue := describe_overdue(job)):
        return end_job(job, job_hosts, JobState.FAILED, overdue)
    claim.begin(f"the step {action!r} of the job", STEP_S[action])
    try:
        with span(f"step {action}", attempt=job.attempt, round=job.round):
            return _ACTIONS[action](job, job_hosts)
    except HostBusyError as error:
        wait_for_busy_host(job, job_hosts, error)
        return None
    except HostError as error:
        return handle_host_error(job, job_hosts, error)
    except FetchRunningError as error:
        return _wait_for_fetch(job, job_hosts, error.project)
    except NotReadyError as error:
        wait_in_queue(job, job_hosts, str(error))
        return None
    except PitwallError as error:
        return end_job(job, job_hosts, JobState.FAILED, str(error))
    except (ClaimLost, DatabaseError) as error:
        # A value that the database refuses comes from the host, and would be refused again.
        if not isinstance(error, DataError):
            raise
        return handle_host_error(
            job, job_hosts, InternalError(f"the database refused a value: {error}")
        )
    except Exception as error:
        logger.exception("job %s: %s failed", job.pk, action)
        # Only the log has its text, which may contain paths and statements of the server.
        problem = f"internal error, see the worker's log: {type(error).__name__}"
        return handle_host_error(job, job_hosts, InternalError(problem))


def _wait_for_fetch(job: Job, job_hosts: JobHosts, project: Project) -> float | None:
    """Request a fetch of a lost mirror, and poll again; without a worker for it the job fails."""
    fetch = request_fetch(project, since=job.started_at)
    # The fetch has been due since then, without a worker.
    waits_since = max(fetch.next_at or read_database_time(), job.started_at or job.created_at)
    waited_s = (read_database_time() - waits_since).total_seconds()
    if fetch.claim is None and waited_s > FETCH_PATIENCE_S:
        message = f"no worker fetches the repository of {project.slug}; check `manage.py doctor`"
        return end_job(job, job_hosts, JobState.FAILED, message)
    return claims.release_claim(job, poll_in_s=FETCH_POLL_S)


def _prepare(job: Job, job_hosts: JobHosts) -> float | None:
    there = {}
    for host in job_hosts.hosts:
        with job_hosts.open_session(host) as session:
            there[host.pk] = inspect_host(job, job_hosts, session)
            if host == job_hosts.lead and job.round:
                _ingest_late_results(job, session)
    require_separate_machines(job_hosts.hosts)
    if not unsupported_cases.decide(job, job_hosts) and (
        other := _find_replaceable_host(job, job_hosts)
    ):
        _, why = outcomes.derive_outcome(job)
        return try_again(job, job_hosts, why, avoid=[other])
    left = _advance_to_next_trial(job)
    # A job without any trial only visits its hosts.
    if left is None and job.trials.exists():
        claims.change_job_state(job, JobState.MEASURING)
        return end_job(job, job_hosts, *outcomes.derive_outcome(job))
    for host in job_hosts.hosts:
        with job_hosts.open_session(host) as session:
            provision_host(job, job_hosts, session, there[host.pk])
    claims.change_job_state(
        job,
        JobState.MEASURING,
        phase="starting",
        round=left.round if left else 1,
        step_started=False,
        followers_started=False,
        message="",
    )
    return AT_ONCE


def _find_replaceable_host(job: Job, job_hosts: JobHosts) -> Host | None:
    """Return a host that another one could replace."""
    return next((host for host in job_hosts.hosts if claims.has_other_hosts(job, host)), None)


def _ingest_late_results(job: Job, session: HostSession) -> None:
    """Store results that finished on this host after their attempt was abandoned.

    It may be any earlier attempt: in those between, the host was absent or another one was used.
    """
    names = {f"jobs/{job.pk}/{step}/journal.jsonl": step for step in list_earlier_step_ids(job)}
    if not names:
        return
    for path, present in session.agent.has(*names).items():
        if present:
            status = session.agent.status(str(job.pk), names[path], 0)
            intake.ingest_events(job, session, status, earlier_step=names[path])


def _start_followers(job: Job, job_hosts: JobHosts) -> float:
    plans = build_round_plans(job, job_hosts, ports={})
    secrets = open_round_secrets(job)
    for host in job_hosts.followers:
        with job_hosts.open_session(host) as session:
            _start_supervisor(job, session, plans[session.label], secrets)
    claims.update_job(job, followers_started=True, phase="building")
    return claims.release_claim(job, poll_in_s=POLL_S)


def _start(job: Job, job_hosts: JobHosts) -> float | None:
    ports = {}
    for host in job_hosts.followers:
        with job_hosts.open_session(host) as session:
            seen = _poll_follower(job, session)
        record_host_seen(host=host)
        if seen.aborted:
            reason = f"{host.name}: {seen.aborted}"
            return end_early(job, job_hosts, host, reason, code=seen.abort_code, avoid=[host])
        if seen.port is None:
            return claims.release_claim(job, poll_in_s=POLL_S)
        ports[session.label] = seen.port
    with job_hosts.open_session(job_hosts.lead) as session:
        plan = build_round_plans(job, job_hosts, ports)[session.label]
        _start_supervisor(job, session, plan, open_round_secrets(job))
    claims.update_job(job, step_started=True, journal_offset=0)
    first_poll_s = compute_first_poll_s(job)
    _announce_quiet(job_hosts, first_poll_s)
    return claims.release_claim(job, poll_in_s=first_poll_s)


def _poll_follower(job: Job, session: HostSession) -> intake.JournalSummary:
    """Read the journal from the beginning each time: it is short until the lead connects."""
    status = session.agent.status(str(job.pk), build_step_id(job), 0)
    seen = intake.ingest_events(job, session, status)
    builds.read_logs(job, session)
    _blame_standstill(status, seen)
    if not status["alive"] and not seen.aborted:
        seen.aborted = _explain_death(status)
    return seen


def _blame_standstill(status: Mapping[str, Any], seen: intake.JournalSummary) -> None:
    """End a round whose supervisor stands still, like one with a process that does not end."""
    standstill = describe_standstill(status)
    if standstill and not seen.aborted:
        seen.aborted, seen.abort_code = standstill, UNKILLABLE


def _start_supervisor(
    job: Job, session: HostSession, plan: bytes, secrets: Mapping[str, str]
) -> None:
    session.transport.put(plan, f"jobs/{job.pk}/{build_step_id(job)}/plan.json", mode=0o600)
    session.agent.start(str(job.pk), build_step_id(job), secrets)


def _poll(job: Job, job_hosts: JobHosts) -> float | None:
    with job_hosts.open_session(job_hosts.lead) as session:
        status = session.agent.status(str(job.pk), build_step_id(job), job.journal_offset)
        seen = intake.ingest_events(job, session, status)
        drop_cancelled(job, session, status["dropped"])
        phase = seen.changes.get("phase", job.phase)
        if phase == WAITING_PHASE and not job.run.wait_for_quiet:
            send_end_of_wait(job, session)
        if intake.is_building(job, seen):
            builds.read_logs(job, session)
    _blame_standstill(status, seen)
    # Without a new event, a waiting trial still waits for the same reason.
    message = job.message if phase == WAITING_PHASE else ""
    changes = {"message": message, **seen.changes}
    claims.update_job(job, journal_offset=status["offset"], **changes)
    record_host_seen(host=job_hosts.lead)
    if seen.round_done:
        return _finish_round(job, job_hosts, seen.lost)
    if seen.aborted or not status["alive"]:
        lead = job_hosts.lead
        reason = f"the agent on {lead.name} ended early: {seen.aborted or _explain_death(status)}"
        return end_early(job, job_hosts, lead, reason, code=seen.abort_code, avoid=[])
    if phase != WAITING_PHASE:
        _announce_quiet(job_hosts, seen.quiet_s)
    pause_s = max(compute_poll_pause_s(job, status), seen.quiet_s)
    return claims.release_claim(job, poll_in_s=pause_s)


def _announce_quiet(job_hosts: JobHosts, seconds: float) -> None:
    """Let beat send no ticks until the next poll, if this machine is one of the hosts."""
    local = any(host.transport == HostTransport.LOCAL for host in job_hosts.hosts)
    if local and seconds > POLL_S:
        announce_local_load(seconds)


def _explain_death(status: dict[str, object]) -> str:
    return "it was killed, or the host restarted" if status["started"] else "it never started"


def _finish_round(job: Job, job_hosts: JobHosts, lost: list[str]) -> float | None:
    following = _advance_to_next_trial(job)
    if following is None:
        return end_job(job, job_hosts, *outcomes.derive_outcome(job))
    if following.round in list_step_rounds(job):
        why = lost[0] if lost else "it skipped trials of its round"
        return try_again(job, job_hosts, f"{job_hosts.lead.name}: {why}", avoid=[job_hosts.lead])
    if pause := describe_pause(job):
        claims.pause_job(job, pause, wait_s=PAUSE_S)
        return None
    claims.update_job(
        job,
        round=following.round,
        step_started=False,
        followers_started=False,
        journal_offset=0,
    )
    return AT_ONCE


def _advance_to_next_trial(job: Job) -> Trial | None:
    """Return the first trial that is still needed; None if there is none or the budget is spent.

    Analysing and skipping cases may be repeated: both follow from the measurements.
    """
    outcomes.abandon_cases(job)
    _analyse(job)
    left = job.trials.filter(state="planned").order_by("position")
    following = left.first()
    if following is None or budgets.allows_round(job, following.round):
        return following
    claims.skip_remaining(job, budgets.SPENT)
    # The last analysis of the cases that do not continue.
    _analyse(job)
    return None


def _analyse(job: Job) -> None:
    interim.analyse_cases(job)
    contest_analyses.analyse_contests(job)


def _cancel(job: Job, job_hosts: JobHosts) -> float | None:
    reached = stop_everywhere(job, job_hosts)
    if job.step_started and job_hosts.lead in reached:
        with job_hosts.open_session(job_hosts.lead) as session:
            status = session.agent.status(str(job.pk), build_step_id(job), job.journal_offset)
            intake.ingest_events(job, session, status)
    message = "cancelled; existing results are kept"
    silent = [host.name for host in job_hosts.hosts if host not in reached]
    if silent:
        message += f"; {', '.join(silent)} could not be reached and stops by itself"
    claims.end_job(job, JobState.CANCELLED, message)
    return None


_ACTIONS = {
    Action.PREPARE: _prepare,
    Action.START_FOLLOWERS: _start_followers,
    Action.START: _start,
    Action.POLL: _poll,
    Action.CANCEL: _cancel,
}
