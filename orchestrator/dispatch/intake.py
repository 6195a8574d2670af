"""Intake of the agent's journal: phases, finished trials, failures."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from agents.hostagent.protocol import INFRASTRUCTURE_FAILURES
from orchestrator.benchmarks.load_specs import has_prepare_steps
from orchestrator.benchmarks.prepare_steps import MAX_PREPARE_STEPS
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.clock import utc_now
from orchestrator.core.logs import logging_about
from orchestrator.core.spans import record_past_span, span
from orchestrator.dispatch import builds
from orchestrator.dispatch.agent import AgentError
from orchestrator.dispatch.job_hosts import HostSession, JobHosts
from orchestrator.dispatch.plan import MAX_ATTEMPTS, FailedTrial
from orchestrator.dispatch.rounds import build_step_id
from orchestrator.dispatch.trial_files import FILES_S, TrialFilesError, fetch_files
from orchestrator.measurements.services import fail_trial, store_trial
from orchestrator.runs import claims
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.quiet_wait import WAITING_PHASE, describe_busy_host
from orchestrator.runs.states import TrialState
from orchestrator.runs.step_rounds import filter_step_trials

CLOCK_TOLERANCE_S = 2.0
#: The limit of events per trial in the journal, including those of builds and of the round. A
#: search has the most: sixty probes of about six phases.
EVENTS_A_TRIAL = 500
#: The same for the prepare steps of a trial: two events of each in each probe.
PREPARE_EVENTS = 60 * 2 * MAX_PREPARE_STEPS
EVENTS_BESIDE = 1_000
#: A host may ask not to be disturbed for up to this time, the longest load of a definition.
MOST_QUIET_S = 3600.0


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of events: the host, and the folder of the step's trials there.

    `ahead_s`: how far the clock of the host is ahead. Small differences, which the transfer of the
    answer causes, are ignored.
    """

    session: HostSession
    folder: str
    late: bool
    ahead_s: float

    def instant(self, event: Mapping[str, Any]) -> datetime:
        """Return the time of an event by the clock of the server."""
        return datetime.fromtimestamp(float(event["t"]) - self.ahead_s, UTC)


@dataclass(slots=True, kw_only=True)
class JournalSummary:
    """The result of the new events of a journal.

    `lost`: trials that the host lost, with the reasons; they are still planned.
    """

    changes: dict[str, Any] = field(default_factory=dict)
    quiet_s: float = 0.0
    round_done: bool = False
    aborted: str = ""
    abort_code: str = ""
    port: int | None = None
    lost: list[str] = field(default_factory=list)


def ingest_events(
    job: Job, session: HostSession, status: Mapping[str, Any], *, earlier_step: str = ""
) -> JournalSummary:
    """Process each event in order; events may be processed again.

    `earlier_step`: the abandoned step whose events these are; empty: the current one.
    """
    _check_number(job, status["events"])
    seen = JournalSummary()
    source = Source(
        session=session,
        folder=f"jobs/{job.pk}/{earlier_step or build_step_id(job)}/trials",
        late=bool(earlier_step),
        ahead_s=_measure_clock_ahead_s(float(status["now"])),
    )
    for event in status["events"]:
        session.claim.check()
        _HANDLERS.get(str(event.get("event")), _ignore_event)(job, source, event, seen)
    return seen


def is_building(job: Job, seen: JournalSummary) -> bool:
    """Return whether a build may be running, so that its log should be read."""
    return str(seen.changes.get("phase", job.phase)).startswith("building")


def load_failed_trials(job: Job) -> list[FailedTrial]:
    """Return the failed trials of a job, oldest first, as input of the plan."""
    failed = job.trials.filter(state=TrialState.FAILED).select_related("variant__commit")
    return [
        FailedTrial(
            case=trial.case_id,
            commit=trial.variant.commit.short_sha,
            code=str((trial.reasons or [""])[0]).partition(":")[0],
            message=trial.message,
        )
        for trial in failed
    ]


def _check_number(job: Job, events: Sequence[Any]) -> None:
    """Check the number of events: each costs statements, so a host must not send too many."""
    trials = filter_step_trials(job).count()
    prepares = has_prepare_steps(read_spec(job.run.definition))
    most = EVENTS_BESIDE + (EVENTS_A_TRIAL + PREPARE_EVENTS * prepares) * trials
    if len(events) > most:
        raise AgentError(
            f"its journal has {len(events)} new events, and a round of {trials} trials makes "
            f"{most} at most; did something other than the agent write it?"
        )


def _measure_clock_ahead_s(host_now: float) -> float:
    ahead = host_now - utc_now().timestamp()
    return ahead if abs(ahead) > CLOCK_TOLERANCE_S else 0.0


def _record_trial_start(
    job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    trial_id = UUID(str(event["trial"]))
    started = source.instant(event)
    own = Trial.objects.filter(pk=trial_id, job=job)
    own.filter(state=TrialState.PLANNED).update(started_at=started)
    # Trials of other jobs are ignored, whatever the host claims.
    if own.exists():
        seen.changes["current_trial"] = trial_id


def _record_phase(
    _job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    seen.changes |= {"phase": str(event["phase"])[:60], "message": ""}
    _pause_polls(source, event, seen)


def _pause_polls(source: Source, event: Mapping[str, Any], seen: JournalSummary) -> None:
    """Poll again when the agent expects it; this also ends an earlier pause."""
    ends_at = source.instant(event) + timedelta(seconds=float(event.get("quiet_s") or 0))
    left_s = (ends_at - utc_now()).total_seconds()
    seen.quiet_s = min(max(0.0, left_s), MOST_QUIET_S)


def _record_busy_host(
    job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    job_hosts = JobHosts(job)
    labels = {job_hosts.label(host): host.name for host in job_hosts.hosts}
    name = labels.get(str(event.get("host")), "A host")
    message = describe_busy_host(name, event.get("busy_share"), event.get("foreign") or ())
    seen.changes |= {"phase": WAITING_PHASE, "message": message}
    _pause_polls(source, event, seen)


def _build_started(
    job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    seen.changes["phase"] = _describe_build(event)[:60]
    builds.record_build_start(job, source.session, event, source.instant(event))


def _describe_build(event: Mapping[str, Any]) -> str:
    label = str(event.get("label") or "")
    return f"building {str(event['commit'])[:10]}" + (label and f" for {label}")


def _build_done(job: Job, source: Source, event: Mapping[str, Any], _: JournalSummary) -> None:
    builds.record_build_done(job, source.session, event, source.instant(event))


def _build_failed(job: Job, source: Source, event: Mapping[str, Any], _: JournalSummary) -> None:
    builds.record_build_failure(job, source.session, event, source.instant(event))


def _record_listening(_job: Job, _: Source, event: Mapping[str, Any], seen: JournalSummary) -> None:
    seen.port = int(event["port"])


def _record_trial_done(
    job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    trial = _find_planned_trial(job, event)
    _pause_polls(source, event, seen)
    if trial is None:
        return
    source.session.claim.begin(f"fetching the files of trial {trial.pk}", FILES_S)
    with logging_about(trial=trial.pk):
        record_past_span("trial", trial.started_at, source.instant(event))
        with span("collect"):
            _store(job, source, trial)
    # The step made progress even if it ends in an error later.
    claims.update_job(job, failures=0)


def _store(job: Job, source: Source, trial: Trial) -> None:
    try:
        files = fetch_files(source.session.transport, source.folder, trial)
    except TrialFilesError as error:
        fail_trial(trial=trial, job=job, code="unreadable", message=str(error), files={})
        return
    store_trial(
        trial=trial,
        job=job,
        files=files,
        late=source.late,
        clock_ahead_s=source.ahead_s,
    )


def _record_trial_failure(
    job: Job, source: Source, event: Mapping[str, Any], seen: JournalSummary
) -> None:
    trial = _find_planned_trial(job, event)
    seen.quiet_s = 0.0
    if trial is None:
        return
    code = str(event.get("code") or "internal")
    message = str(event.get("message") or "")
    if code in INFRASTRUCTURE_FAILURES and (source.late or job.attempt < MAX_ATTEMPTS):
        seen.lost.append(message)
        return
    output = str(event.get("output") or "").strip()
    source.session.claim.begin(f"fetching the files of trial {trial.pk}", FILES_S)
    with logging_about(trial=trial.pk):
        record_past_span("trial", trial.started_at, source.instant(event), failed=code)
        with span("collect"):
            fail_trial(
                trial=trial,
                job=job,
                code=code,
                message=f"{message}\n{output}".strip(),
                files=_fetch_left_files(source, trial),
            )
    claims.update_job(job, failures=0)


def _fetch_left_files(source: Source, trial: Trial) -> dict[str, bytes]:
    """Return the files of a failed trial; none if they are not valid."""
    try:
        return fetch_files(source.session.transport, source.folder, trial)
    except TrialFilesError as error:
        logger.warning("the files of trial %s are left: %s", trial.pk, error)
        return {}


def _round_done(_job: Job, _: Source, _event: Mapping[str, Any], seen: JournalSummary) -> None:
    seen.round_done = True
    seen.changes["current_trial"] = None


def _record_abort(_job: Job, _: Source, event: Mapping[str, Any], seen: JournalSummary) -> None:
    seen.aborted = str(event.get("reason") or "no reason given")
    seen.abort_code = str(event.get("code") or "")


def _ignore_event(_job: Job, _: Source, _event: Mapping[str, Any], _seen: JournalSummary) -> None:
    """Ignore an event for users, or one of a newer agent."""


def _find_planned_trial(job: Job, event: Mapping[str, Any]) -> Trial | None:
    """Return the trial of an event unless it is stored already."""
    return (
        job.trials.filter(pk=UUID(str(event["trial"])), state=TrialState.PLANNED)
        .select_related("case", "variant__commit")
        .first()
    )


_HANDLERS = {
    "build_started": _build_started,
    "build_done": _build_done,
    "build_failed": _build_failed,
    "listening": _record_listening,
    "trial_started": _record_trial_start,
    "phase": _record_phase,
    "host_busy": _record_busy_host,
    "trial_done": _record_trial_done,
    "trial_failed": _record_trial_failure,
    "round_done": _round_done,
    "aborted": _record_abort,
}
