"""Taking in what the agent's journal tells: phases, finished trials, failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from agents.hostagent.protocol import TRIAL_FILES
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import NotFoundError
from orchestrator.dispatch.plan import FailedTrial
from orchestrator.dispatch.rounds import step_id
from orchestrator.results.services import fail_trial, store_trial
from orchestrator.runs import turns
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import TrialState
from orchestrator.transport.base import Transport

FILE_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the new events of a journal add up to."""

    changes: dict[str, Any] = field(default_factory=dict)
    quiet_s: float = 0.0
    round_done: bool = False
    aborted: str = ""


def take_in(job: Job, transport: Transport, events: Sequence[Mapping[str, Any]]) -> Seen:
    """Acts on each event in order; safe to be repeated with events that were seen before."""
    seen = Seen()
    for event in events:
        _HANDLERS.get(str(event.get("event")), _ignore)(job, transport, event, seen)
    return seen


def failed_trials(job: Job) -> list[FailedTrial]:
    """The failed trials of a job, oldest first, as the plan wants to see them."""
    failed = job.trials.filter(state=TrialState.FAILED).select_related("variant__commit")
    return [
        FailedTrial(
            commit=trial.variant.commit.short_sha,
            code=str((trial.reasons or [""])[0]).partition(":")[0],
            message=trial.message,
        )
        for trial in failed
    ]


def _trial_started(job: Job, _: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    trial_id = UUID(str(event["trial"]))
    started = datetime.fromtimestamp(float(event["t"]), UTC)
    Trial.objects.filter(pk=trial_id, job=job, state=TrialState.PLANNED).update(started_at=started)
    seen.changes["current_trial"] = trial_id


def _phase(_job: Job, _: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    seen.changes["phase"] = str(event["phase"])[:60]
    ends_at = float(event["t"]) + float(event.get("quiet_s") or 0)
    seen.quiet_s = max(0.0, ends_at - utc_now().timestamp())


def _build_started(_job: Job, _: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    seen.changes["phase"] = f"building {str(event['commit'])[:10]}"


def _trial_done(job: Job, transport: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    trial = _planned(job, event)
    seen.quiet_s = 0.0
    if trial is not None:
        store_trial(trial=trial, job=job, files=_files(job, transport, trial))
        # Fetching may take a while: the turn must not run out under it.
        turns.change(job)


def _trial_failed(job: Job, transport: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    trial = _planned(job, event)
    seen.quiet_s = 0.0
    if trial is not None:
        message = str(event.get("message") or "")
        output = str(event.get("output") or "").strip()
        fail_trial(
            trial=trial,
            job=job,
            code=str(event.get("code") or "internal"),
            message=f"{message}\n{output}".strip(),
            files=_files(job, transport, trial),
        )


def _round_done(_job: Job, _: Transport, _event: Mapping[str, Any], seen: Seen) -> None:
    seen.round_done = True
    seen.changes["current_trial"] = None


def _aborted(_job: Job, _: Transport, event: Mapping[str, Any], seen: Seen) -> None:
    seen.aborted = str(event.get("reason") or "no reason given")


def _ignore(_job: Job, _: Transport, _event: Mapping[str, Any], _seen: Seen) -> None:
    """An event that only people read in the journal, or one of a newer agent."""


def _planned(job: Job, event: Mapping[str, Any]) -> Trial | None:
    """The trial of an event unless it was taken in before."""
    return (
        job.trials.filter(pk=UUID(str(event["trial"])), state=TrialState.PLANNED)
        .select_related("case", "variant__commit")
        .first()
    )


def _files(job: Job, transport: Transport, trial: Trial) -> dict[str, bytes]:
    folder = f"jobs/{job.pk}/{step_id(job)}/trials/{trial.pk}"
    files = {}
    for name in TRIAL_FILES:
        try:
            files[name] = transport.get(f"{folder}/{name}", limit=FILE_LIMIT_BYTES)
        except NotFoundError:
            continue
    return files


_HANDLERS = {
    "build_started": _build_started,
    "trial_started": _trial_started,
    "phase": _phase,
    "trial_done": _trial_done,
    "trial_failed": _trial_failed,
    "round_done": _round_done,
    "aborted": _aborted,
}
