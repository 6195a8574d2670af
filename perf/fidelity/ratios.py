"""The ratio of Pitwall's values to the tool's: the centre of the pairs, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from orchestrator.stats.signed_rank import FEWEST_PAIRS, estimate_hodges_lehmann


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """`estimate`, and the 95 % interval from `low` to `high`."""

    estimate: float
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """The distance from 1 if it cannot be chance; 0 if the interval contains 1."""
        return 0.0 if self.low <= 1 <= self.high else abs(self.estimate - 1)


def estimate_ratio(ratios: Sequence[float]) -> Ratio:
    """Return the ratio of pairs in random order, whose logs are symmetric if nothing differs.

    It is the median of the pairwise geometric means (Hodges and Lehmann), with the interval that
    inverts the signed rank test. Fewer than 7 pairs have no such interval: then it is the median
    with the range.
    """
    if len(ratios) < FEWEST_PAIRS:
        return Ratio(estimate=median(ratios), low=min(ratios), high=max(ratios))
    centre = estimate_hodges_lehmann([math.log(ratio) for ratio in ratios])
    return Ratio(
        estimate=math.exp(centre.estimate), low=math.exp(centre.low), high=math.exp(centre.high)
    )
