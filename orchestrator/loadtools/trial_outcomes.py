"""What a trial without usable values says about the measured code, by the codes of its reasons."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from orchestrator.loadtools.model import Level
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.stats.block_outcomes import Outcome

#: The codes of failed trials that the measured code causes (`agents.hostagent.protocol.FAILURES`).
#: The load tool and the prepare steps are the same on both sides, so a failure of one side counts.
BROKEN_CODES = frozenset(
    {
        "build_failed",
        "server_did_not_start",
        "server_not_ready",
        "wrong_answer",
        "wrong_protocol",
        "server_died",
        "prepare_failed",
        "tool_failed",
    }
)
#: `several_flags` only counts other reasons.
_HARD: Mapping[str, Outcome] = MappingProxyType(
    {
        code: rule.outcome
        for code, rule in THRESHOLDS.items()
        if rule.level == Level.INVALID and code != "several_flags"
    }
)


def classify_failure(code: str) -> Outcome:
    """Return the outcome of a failed trial."""
    return Outcome.BROKEN if code in BROKEN_CODES else Outcome.VOID


def classify_invalid(codes: Iterable[str]) -> Outcome:
    """Return the outcome of an invalid trial.

    It is void if a hard reason is one of the environment, since that may have caused the others.
    """
    outcomes = {_HARD[code] for code in codes if code in _HARD}
    if not outcomes or Outcome.VOID in outcomes:
        return Outcome.VOID
    return Outcome.BROKEN if Outcome.BROKEN in outcomes else Outcome.SATURATED
