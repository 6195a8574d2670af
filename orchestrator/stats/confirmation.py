"""The judgement of a confirmation run: whether it shows the change that was detected.

A detected change is a suspicion with a size. The confirmation run confirms it if the two commits
really differ in its direction. It refutes it only by a proof: the difference is smaller than the
detected one (two one-sided tests), or it is in the other direction. A real difference that is not
beyond the margin, or whose size is open, is confirmed as small.
"""

import math
from enum import StrEnum

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import ALPHA, Comparison, Verdict, compute_standard_error
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.paired import FEWEST_BLOCKS, compute_equivalence_p

#: The smallest change that a detection searches for, as a share of the margin of its metric. Two
#: such changes together are beyond the margin.
SEARCHED_SHARE = 2 / 3
_CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)


class Confirmation(StrEnum):
    """The result of a confirmation run for one detected change.

    - confirmed: the difference is real and beyond the margin
    - small: it is real, but within the margin, or its size is not decided
    - refuted: it is smaller than the detected one, or in the other direction
    - undecided: none of these is proven
    """

    CONFIRMED = "confirmed"
    SMALL = "small"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


def get_confirmation_spending(number: int) -> Spending:
    """Return the alphas of the `number`-th confirmation run of the same change, from 1.

    Confirmation runs have interim analyses, and all runs of a change share one error rate.
    """
    return Spending(runs=number, analyses=len(INTERIM_BLOCKS))


def judge_confirmation(
    comparison: Comparison, *, detected: float, spending: Spending
) -> Confirmation:
    """Judge a detected change, a share, by the comparison of the commits on both sides of it.

    `comparison` was made with the alphas of `spending`. If its robust estimate contradicts it, it
    proves no more than both agree on.
    """
    error = compute_standard_error(comparison)
    change, p_value, degrees = comparison.change, comparison.p_value, comparison.degrees
    if comparison.blocks < FEWEST_BLOCKS or error is None or change is None or p_value is None:
        return Confirmation.UNDECIDED
    if p_value < min(ALPHA, spending.alpha):
        if not _agrees_on_direction(comparison):
            return Confirmation.UNDECIDED
        if (change > 0) != (detected > 0):
            return Confirmation.REFUTED
        is_large = comparison.verdict in _CLAIMS and not comparison.fragile
        return Confirmation.CONFIRMED if is_large else Confirmation.SMALL
    size = math.log1p(abs(detected))
    equivalence_p = compute_equivalence_p(
        math.log1p(change), error, degrees or comparison.blocks - 1, low=-size, high=size
    )
    is_smaller = equivalence_p < spending.equivalence_alpha
    return Confirmation.REFUTED if is_smaller else Confirmation.UNDECIDED


def _agrees_on_direction(comparison: Comparison) -> bool:
    """Return whether the robust estimate, if there is one, excludes the other direction."""
    robust = comparison.robust
    if robust is None or comparison.change is None:
        return True
    return robust.low > 0 if comparison.change > 0 else robust.high < 0
