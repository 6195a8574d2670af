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
        "tool_missing",
        "port_in_use",
    }
)
#: So many failed trials of one commit, of whatever kind, end the job.
MAX_FAILED_TRIALS = 3
MAX_ATTEMPTS = 3
MAX_CONNECT_FAILURES = 3
MAX_LOOK_FAILURES = 10


class Action(StrEnum):
    PREPARE = "prepare"
    START = "start"
    LOOK = "look"
    CANCEL = "cancel"
    FINISH = "finish"
    NEXT_ROUND = "next round"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a job stands: its state, and whether its current round was started on the host."""

    state: str
    step_started: bool
    cancel_requested: bool


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
    return Action.LOOK if step.step_started else Action.START


def after_round(*, planned_left: int) -> Action:
    """What follows a round that ran to its end."""
    return Action.NEXT_ROUND if planned_left else Action.FINISH


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


def backoff_s(failures: int) -> float:
    """Seconds to wait after the so many-th failure in a row (1 or more): 2, 4, 8 … at most 30."""
    return min(30.0, 2.0**failures)


def cpu_sets(logical: int | None) -> tuple[list[int] | None, list[int] | None]:
    """Disjoint CPUs for the server and for the load tool, on a host with `logical` CPUs.

    One CPU, or an unknown number, cannot be divided. From three on, CPU 0 is left to the rest
    of the machine.
    """
    if logical is None or logical < 2:
        return None, None
    if logical == 2:
        return [0], [1]
    usable = list(range(1, logical))
    half = len(usable) // 2
    return usable[:half], usable[half:]
