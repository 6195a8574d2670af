"""What Pitwall says to what the tool says: the centre of the pairs' ratios, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from orchestrator.stats.signed_rank import FEWEST_PAIRS, hodges_lehmann


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """`estimate`, and the 95 % interval from `low` to `high`."""

    estimate: float
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """How far it is from 1 where that cannot be chance; 0 where the interval has 1 in it."""
        return 0.0 if self.low <= 1 <= self.high else abs(self.estimate - 1)


def ratio_of(ratios: Sequence[float]) -> Ratio:
    """Of pairs measured in random order, so that their logs are symmetric where nothing differs.

    The median of the pairs' geometric means, two by two (Hodges and Lehmann), with the interval
    that inverts the signed rank test. Fewer than 7 pairs have no such interval: then it is the
    median, and all that was seen.
    """
    if len(ratios) < FEWEST_PAIRS:
        return Ratio(estimate=median(ratios), low=min(ratios), high=max(ratios))
    centre = hodges_lehmann([math.log(ratio) for ratio in ratios])
    return Ratio(
        estimate=math.exp(centre.estimate), low=math.exp(centre.low), high=math.exp(centre.high)
    )
