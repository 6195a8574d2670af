"""The paired t test on differences of logs, with the equivalence test."""

import math
from dataclasses import dataclass

from orchestrator.stats import special
from orchestrator.stats.order_effect import BlockMeans
from orchestrator.stats.summary import compute_t_quantile

#: With fewer blocks, a single block can dominate a t test.
FEWEST_BLOCKS = 5
#: Smaller differences of logs are rounding errors, not noise.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """The test of the mean of n differences of logs; all numbers are logs.

    With a single difference only n and mean are known. `degrees` of freedom: n − 1 if None.
    """

    n: int
    mean: float
    half_width: float | None
    standard_error: float | None
    p_value: float | None
    equivalence_p: float | None
    margin: float
    degrees: float | None = None

    @property
    def low(self) -> float | None:
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        return None if self.half_width is None else self.mean + self.half_width


def compute_paired_test(means: BlockMeans, *, margin: float, confidence: float) -> PairedTest:
    """Test the mean of the first row (logs of ratios) against 0 and against the margin.

    Equivalence means a ratio between 1 − margin and 1 + margin; its p is the larger of the two
    one-sided ones (Schuirmann 1987). Differences with no spread are treated as exact.
    """
    n, mean = means.differences.shape[1], float(means.mean[0])
    if n < 2:
        return PairedTest(
            n=n,
            mean=mean,
            half_width=None,
            standard_error=None,
            p_value=None,
            equivalence_p=None,
            margin=margin,
        )
    error, degrees = float(means.error[0]), float(means.degrees[0])
    return compute_mean_test(n, mean, error, degrees, margin=margin, confidence=confidence)


def compute_mean_test(
    n: int, mean: float, error: float, degrees: float, *, margin: float, confidence: float
) -> PairedTest:
    """Test a mean, given its standard error and the degrees of freedom."""
    return PairedTest(
        n=n,
        mean=mean,
        half_width=compute_t_quantile(confidence, degrees) * error,
        standard_error=error,
        p_value=min(1.0, 2 * _compute_tail(abs(mean), error, degrees)),
        equivalence_p=compute_equivalence_p(
            mean, error, degrees, low=math.log1p(-margin), high=math.log1p(margin)
        ),
        margin=margin,
        degrees=degrees,
    )


def compute_equivalence_p(
    mean: float, error: float, degrees: float, *, low: float, high: float
) -> float:
    """Return the p value of the test that the true mean is between `low` and `high`."""
    above = _compute_tail(mean - low, error, degrees)
    below = _compute_tail(high - mean, error, degrees)
    return max(above, below)


def _compute_tail(distance: float, error: float, degrees: float) -> float:
    """Return the probability that a mean is this far beyond its true value by chance."""
    if abs(distance) < ROUNDING:
        return 0.5
    if error < ROUNDING:
        return 0.0 if distance > 0 else 1.0
    return float(special.stdtr(degrees, -distance / error))
