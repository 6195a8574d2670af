"""The noise of a machine: the difference between two measurements of the same commit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.stats import special
from orchestrator.stats.summary import compute_t_quantile

#: With fewer pairs the uncertainty of a standard deviation exceeds a factor of three.
FEWEST_PAIRS = 5
#: The probability that the noise is not above its upper limit.
_ASSURANCE = 0.8
#: Smaller means are rounding errors, not drift.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The differences of logs of A/A pairs, second minus first.

    `sigma` is their standard deviation, with its chi-square interval `low` to `high`; `mean` has
    its t interval `mean_low` to `mean_high`. Both intervals are at 95 %. All are logs: 0.02 is
    about 2 %. `excluded`: the number of pairs that do not count.
    """

    pairs: int
    sigma: float
    low: float
    high: float
    mean: float
    mean_low: float
    mean_high: float
    excluded: int = 0

    @property
    def upper(self) -> float:
        """The upper limit of `sigma`, which the true one exceeds once in five times.

        A plan with `sigma` itself would promise too much in every second case.
        """
        degrees = self.pairs - 1
        return self.sigma * math.sqrt(degrees / float(special.chdtri(degrees, _ASSURANCE)))

    def count_usable(self, rounds: int) -> int:
        """Return how many of the rounds are not excluded, if the share stays the same."""
        return rounds * self.pairs // (self.pairs + self.excluded)

    def count_rounds(self, blocks: int) -> int:
        """Return the rounds that contain so many usable blocks, if the share stays the same."""
        return -(-blocks * (self.pairs + self.excluded) // self.pairs)

    @property
    def drifts(self) -> bool:
        """Return whether the second of a pair differs from the first: the interval excludes 0."""
        return abs(self.mean) > _ROUNDING and not self.mean_low <= 0 <= self.mean_high


def estimate_noise(
    differences: Sequence[float], *, excluded: int = 0, confidence: float = 0.95
) -> Noise | None:
    """Return the noise of the pairs' ln(second / first); None with fewer than FEWEST_PAIRS.

    `excluded`: the number of other pairs, which do not count.

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
        low=sigma * math.sqrt(degrees / float(special.chdtri(degrees, tail))),
        high=sigma * math.sqrt(degrees / float(special.chdtri(degrees, 1 - tail))),
        mean=mean,
        mean_low=mean - reach,
        mean_high=mean + reach,
        excluded=excluded,
    )
