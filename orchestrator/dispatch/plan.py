"""What a job needs next, decided from what is known of it. No Django, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Failures that the next round would only repeat: they end the job once the round is over.
HOPELESS = frozenset(
    {
        "build_failed",
        "server_did_not_start",
        "server_not_ready",
        "wrong_answer",
        "wrong_protocol",
        "service_not_ready",
        "tool_missing",
        "port_in_use",
    }
)
#: So many failed trials of one commit, of whatever kind, end the job.
MAX_FAILED_TRIALS = 3
#: A job is started so often at most when it is its hosts that fail.
MAX_ATTEMPTS = 4
MAX_CONNECT_FAILURES = 3
MAX_LOOK_FAILURES = 10


class Action(StrEnum):
    PREPARE = "prepare"
    START_FOLLOWERS = "start followers"
    START = "start"
    LOOK = "look"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a job stands: its state, and on which hosts its current round was started."""

    state: str
    step_started: bool
    cancel_requested: bool
    has_followers: bool = False
    followers_started: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A trial that failed: of which commit, with which code of the agent, and its message."""

    commit: str
    code: str
    message: str


def next_action(step: Step) -> Action:
    """What to do for an active job now."""
    if step.cancel_requested:
        return Action.CANCEL
    if step.state == "preparing":
        return Action.PREPARE
    if step.step_started:
        return Action.LOOK
    if step.has_followers and not step.followers_started:
        return Action.START_FOLLOWERS
    return Action.START


def reason_to_stop(failed: Sequence[FailedTrial]) -> str | None:
    """Why a job with these failures must not go on; None if it may."""
    for trial in failed:
        if trial.code in HOPELESS:
            return f"commit {trial.commit}: {trial.message}"
    for commit in dict.fromkeys(trial.commit for trial in failed):
        own = [trial for trial in failed if trial.commit == commit]
        if len(own) >= MAX_FAILED_TRIALS:
            return f"commit {commit}: {len(own)} trials failed; the last: {own[-1].message}"
    return None


def retry_s(attempt: int) -> float:
    """Seconds in the queue after the so many-th attempt (1 or more) was lost: 4, 16, 64, 256."""
    return min(300.0, 4.0**attempt)


def backoff_s(failures: int) -> float:
    """Seconds to wait after the so many-th failure in a row (1 or more): 2, 4, 8 … at most 30."""
    return min(30.0, 2.0**failures)
