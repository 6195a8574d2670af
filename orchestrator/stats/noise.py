"""The noise of a machine: how much two measurements of the very same thing differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from orchestrator.stats.summary import t_quantile

#: From fewer pairs a standard deviation is known to little more than a factor of three.
FEWEST_PAIRS = 5
#: Means below this are rounding, not drift.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The differences of logs of A/A pairs, second against first.

    `sigma` is their standard deviation, with its chi-square interval `low` to `high`; `mean` has
    its t interval `mean_low` to `mean_high`. Both are of 95 %, and logs: 0.02 is about 2 %.
    """

    pairs: int
    sigma: float
    low: float
    high: float
    mean: float
    mean_low: float
    mean_high: float

    @property
    def drifts(self) -> bool:
        """Whether the second of a pair is not the like of the first: 0 is not in the interval."""
        return abs(self.mean) > _ROUNDING and not self.mean_low <= 0 <= self.mean_high


def noise_of(differences: Sequence[float], *, confidence: float = 0.95) -> Noise | None:
    """What the pairs' ln(second / first) say together; None from fewer than FEWEST_PAIRS.

    The order of each pair is kept and no sign is drawn at random: under A/A the sign of a
    difference means nothing, and a drift from the first to the second shows as a mean beside 0.
    """
    known = np.array(differences, dtype=np.float64)
    if known.size < FEWEST_PAIRS:
        return None
    degrees = known.size - 1
    sigma, mean = float(known.std(ddof=1)), float(known.mean())
    reach = t_quantile(confidence, degrees) * sigma / math.sqrt(known.size)
    tail = (1 - confidence) / 2
    return Noise(
        pairs=known.size,
        sigma=sigma,
        low=sigma * math.sqrt(degrees / float(chdtri(degrees, tail))),
        high=sigma * math.sqrt(degrees / float(chdtri(degrees, 1 - tail))),
        mean=mean,
        mean_low=mean - reach,
        mean_high=mean + reach,
    )
