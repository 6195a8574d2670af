"""What a job needs next, decided from what is known of it. No Django, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Failures that the next round would only repeat: their case is given up once the round is over.
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
#: So many failed trials of one case and commit, of whatever kind, are the end of the case.
MAX_FAILED_TRIALS = 3
#: A job is started so often at most when it is its hosts that fail.
MAX_ATTEMPTS = 4
MAX_CONNECT_FAILURES = 3
MAX_POLL_FAILURES = 10


class Action(StrEnum):
    PREPARE = "prepare"
    START_FOLLOWERS = "start followers"
    START = "start"
    POLL = "poll"
    CANCEL = "cancel"


#: Seconds that a step may take at most; what it had open is closed then, and it has failed.
#: A first step sends load tools and commits over lines of any kind: what has come stays there.
#: In a poll, the files of each trial have a time of their own (`trial_files.FILES_S`).
STEP_S = {
    Action.PREPARE: 1800.0,
    Action.START_FOLLOWERS: 120.0,
    Action.START: 120.0,
    Action.POLL: 120.0,
    Action.CANCEL: 60.0,
}
#: The same for ending what runs on the hosts of a job that has failed.
STOP_S = 60.0


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
    """A trial that failed: of which case and commit, with which code of the agent, and its message.

    `case`: the key of the case; any value that no other case has.
    """

    case: int
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
        return Action.POLL
    if step.has_followers and not step.followers_started:
        return Action.START_FOLLOWERS
    return Action.START


def reasons_to_give_up(failed: Sequence[FailedTrial]) -> dict[int, str]:
    """The cases that must not go on, and why: a block without one of its commits is void."""
    by_case: dict[int, list[FailedTrial]] = {}
    for trial in failed:
        by_case.setdefault(trial.case, []).append(trial)
    found = {case: _reason(trials) for case, trials in by_case.items()}
    return {case: reason for case, reason in found.items() if reason}


def _reason(failed: Sequence[FailedTrial]) -> str:
    """Why a case with these failures must not go on; empty if it may."""
    for trial in failed:
        if trial.code in HOPELESS:
            return f"commit {trial.commit}: {trial.message}"
    for commit in dict.fromkeys(trial.commit for trial in failed):
        own = [trial for trial in failed if trial.commit == commit]
        if len(own) >= MAX_FAILED_TRIALS:
            return f"commit {commit}: {len(own)} trials failed; the last: {own[-1].message}"
    return ""


def retry_s(attempt: int) -> float:
    """Seconds in the queue after the so many-th attempt (1 or more) was lost: 4, 16, 64, 256."""
    return min(300.0, 4.0**attempt)


def backoff_s(failures: int) -> float:
    """Seconds to wait after the so many-th failure in a row (1 or more): 2, 4, 8 … at most 30."""
    return min(30.0, 2.0**failures)
