"""The next action of a job, decided from its known state. No Django, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Failures that a next round would only repeat: their case is skipped after the round.
HOPELESS = frozenset(
    {
        "build_failed",
        "server_did_not_start",
        "server_not_ready",
        "wrong_answer",
        "wrong_protocol",
        "wrong_build",
        "service_not_ready",
        "prepare_failed",
        "tool_missing",
    }
)
#: A case is skipped after this many failed trials, of any kind, with one commit.
MAX_FAILED_TRIALS = 3
#: The limit of attempts of a job whose hosts fail.
MAX_ATTEMPTS = 4
MAX_CONNECT_FAILURES = 3
MAX_POLL_FAILURES = 10
#: Polls of an absent host count as at most this many failures: they never cost the attempt, and
#: the pause between two of them is the longest one.
MOST_ABSENCES = 5


class Action(StrEnum):
    PREPARE = "prepare"
    START_FOLLOWERS = "start followers"
    START = "start"
    POLL = "poll"
    CANCEL = "cancel"


#: The time limits of steps in seconds; then connections are closed, and the step has failed. A
#: first step sends load tools and commits over lines of any speed; received data stay on the host.
#: In a poll, the files of each trial have a separate limit (`trial_files.FILES_S`).
STEP_S = {
    Action.PREPARE: 1800.0,
    Action.START_FOLLOWERS: 120.0,
    Action.START: 120.0,
    Action.POLL: 120.0,
    Action.CANCEL: 60.0,
}
#: The limit for stopping the processes on the hosts of a failed job.
STOP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The state of a job, and the hosts on which its current round was started."""

    state: str
    step_started: bool
    cancel_requested: bool
    has_followers: bool = False
    followers_started: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A failed trial: its case and commit, the agent's error code and the message.

    `case`: the key of the case; any value that no other case has.
    """

    case: int
    commit: str
    code: str
    message: str


def choose_action(step: Step) -> Action:
    """Return the next action of an active job."""
    if step.cancel_requested:
        return Action.CANCEL
    if step.state == "preparing":
        return Action.PREPARE
    if step.step_started:
        return Action.POLL
    if step.has_followers and not step.followers_started:
        return Action.START_FOLLOWERS
    return Action.START


def find_abandoned_cases(failed: Sequence[FailedTrial]) -> dict[int, str]:
    """Map the cases that must stop to the reason: without one of its commits a block is
    excluded."""
    by_case: dict[int, list[FailedTrial]] = {}
    for trial in failed:
        by_case.setdefault(trial.case, []).append(trial)
    reasons = {case: _explain_abandonment(trials) for case, trials in by_case.items()}
    return {case: reason for case, reason in reasons.items() if reason}


def _explain_abandonment(failed: Sequence[FailedTrial]) -> str:
    """Return why a case with these failures must stop; empty if it may continue."""
    for trial in failed:
        if trial.code in HOPELESS:
            return f"commit {trial.commit}: {trial.message}"
    for commit in dict.fromkeys(trial.commit for trial in failed):
        own = [trial for trial in failed if trial.commit == commit]
        if len(own) >= MAX_FAILED_TRIALS:
            return f"commit {commit}: {len(own)} trials failed; the last: {own[-1].message}"
    return ""


def retry_s(attempt: int) -> float:
    """Return the seconds in the queue after attempt n (1 or more) was lost: 4, 16, 64, 256."""
    return min(300.0, 4.0**attempt)


def compute_backoff_s(failures: int) -> float:
    """Return the seconds to wait after the n-th failure in a row (1 or more): 2, 4, 8 … at most
    30."""
    return min(30.0, 2.0**failures)
