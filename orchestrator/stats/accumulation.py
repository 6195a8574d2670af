"""What several real changes of a series add up to.

Each small change is within the margin, so none of them needs anybody. Five changes of 4 % make a
series 22 % slower all the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.stats.comparison import CONFIDENCE, as_change
from orchestrator.stats.summary import compute_t_quantile

#: A single small change is judged by itself.
FEWEST_CHANGES = 2
#: The standard errors come from confirmation runs of about ten blocks each.
_DEGREES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RealChange:
    """A change that a confirmation run proved: the log of after / before with its error.

    `small`: it is not beyond the margin. `worse`: it is a regression.
    """

    difference: float
    error: float
    small: bool
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalChange:
    """What `changes` small changes add up to, with its 95 % interval."""

    changes: int
    change: float
    low: float
    high: float


def add_up_small_changes(changes: Sequence[RealChange], margin: float) -> TotalChange | None:
    """Return the total of the small changes of a series; None unless it is beyond the margin.

    All changes begin after the same reference. At least two of the small ones must be for the
    worse. Small improvements count against them, and so do large ones: if the series is not worse
    than the reference by more than the margin, there is no total. Large regressions have alerts of
    their own.
    """
    small = [each for each in changes if each.small]
    worse = [each for each in small if each.worse]
    if len(worse) < FEWEST_CHANGES:
        return None
    sign = math.copysign(1.0, sum(each.difference for each in worse))
    total = sum(each.difference for each in small)
    of_all = sum(each.difference for each in changes)
    limit = abs(math.log1p(sign * margin))
    if min(sign * total, sign * of_all) <= limit:
        return None
    error = math.sqrt(sum(each.error**2 for each in small))
    reach = compute_t_quantile(CONFIDENCE, _DEGREES * len(small)) * error
    return TotalChange(
        changes=len(small),
        change=as_change(total),
        low=as_change(total - reach),
        high=as_change(total + reach),
    )
