"""Judge whether a trial is valid, from facts of its environment and load; never from its values.

The thresholds are in thresholds.py. Unknown facts give no reason.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from orchestrator.loadtools import interference, network_checks, outcome, sampled_answers, shape
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Level, Reason, Validity
from orchestrator.loadtools.thresholds import NEIGHBOURS, THRESHOLDS

__all__ = ["Evidence", "drop_reasons", "judge", "tolerate_neighbours"]
_CHECKS = (
    *outcome.CHECKS,
    *sampled_answers.CHECKS,
    *shape.CHECKS,
    *network_checks.CHECKS,
    *interference.CHECKS,
)


def judge(evidence: Evidence) -> Validity:
    """Return all reasons why the trial is suspect or invalid; without any it is valid.

    Soft reasons of one cause make it suspect, of several causes invalid.
    """
    reasons = [reason for check in _CHECKS if (reason := check(evidence)) is not None]
    return Validity(reasons=(*reasons, *_combine_soft_reasons(reasons)))


def drop_reasons(validity: Validity, codes: Collection[str]) -> tuple[Reason, ...]:
    """Return the reasons without these codes, and count the remaining soft ones again.

    Fewer of them are never too many where all were not, such as on a shared host.
    """
    gone = {*codes, "several_flags"}
    left = [reason for reason in validity.reasons if reason.code not in gone]
    again = _combine_soft_reasons(left) if "several_flags" in validity.codes else []
    return (*left, *again)


def tolerate_neighbours(validity: Validity) -> Validity:
    """Return the validity on a host that is shared with other work.

    Reasons of other processes make the trial suspect at most, and add up with no other reason.
    """
    kept = [reason for reason in validity.reasons if reason.code != "several_flags"]
    own = [reason for reason in kept if not _is_by_neighbours(reason)]
    tolerated = [
        replace(reason, level=Level.SUSPECT) if _is_by_neighbours(reason) else reason
        for reason in kept
    ]
    return Validity(reasons=(*tolerated, *_combine_soft_reasons(own)))


def _is_by_neighbours(reason: Reason) -> bool:
    rule = THRESHOLDS.get(reason.code)
    return rule is not None and rule.cause == NEIGHBOURS


def _combine_soft_reasons(reasons: Sequence[Reason]) -> list[Reason]:
    soft = [reason.code for reason in reasons if reason.level == Level.SUSPECT]
    causes = {THRESHOLDS[code].cause or code for code in soft}
    rule = THRESHOLDS["several_flags"]
    if not rule.is_broken_by(len(causes)):
        return []
    observation = f"{', '.join(soft)}: soft reasons of {len(causes)} causes at once"
    return [rule.build_reason(observation)]
