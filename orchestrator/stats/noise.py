"""The noise of a machine: the difference between two measurements of the same commit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from orchestrator.stats.summary import compute_t_quantile

#: With fewer pairs the uncertainty of a standard deviation exceeds a factor of three.
FEWEST_PAIRS = 5
#: Smaller means are rounding errors, not drift.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The differences of logs of A/A pairs, second minus first.

    `sigma` is their standard deviation, with its chi-square interval `low` to `high`; `mean` has
    its t interval `mean_low` to `mean_high`. Both intervals are at 95 %. All are logs: 0.02 is
    about 2 %.
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
        """Return whether the second of a pair differs from the first: the interval excludes 0."""
        return abs(self.mean) > _ROUNDING and not self.mean_low <= 0 <= self.mean_high


def estimate_noise(differences: Sequence[float], *, confidence: float = 0.95) -> Noise | None:
    """Return the noise of the pairs' ln(second / first); None with fewer than FEWEST_PAIRS.

    The order of each pair is kept, and signs are not randomised. In an A/A test the sign has no
    meaning, and a drift from the first to the second appears as a mean other than 0.
    """
    known = np.array(differences, dtype=np.float64)
    if known.size < FEWEST_PAIRS:
        return None
    degrees = known.size - 1
    sigma, mean = float(known.std(ddof=1)), float(known.mean())
    reach = compute_t_quantile(confidence, degrees) * sigma / math.sqrt(known.size)
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
