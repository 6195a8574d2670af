"""What several trials of one case say together, and which percentiles a trial can support."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

#: Requests that must lie beyond a percentile before it is believed.
SUPPORTING_REQUESTS = 10


def is_supported(percentile: float, n: int) -> bool:
    """Whether n requests can carry a percentile (0 to 100): n(1 − percentile/100) ≥ 10."""
    # The hair of tolerance: 100 − 99.9 is a little under 0.1 in floating point.
    return n * (100 - percentile) >= 100 * SUPPORTING_REQUESTS - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Trials of one metric. `mean` is geometric; `low` and `high` bound it at `confidence`.

    `spread` is the standard deviation of the logs, about the coefficient of variation. What one
    trial cannot tell (`low`, `high`, `spread`) is None.
    """

    n: int
    mean: float
    minimum: float
    maximum: float
    low: float | None
    high: float | None
    spread: float | None
    confidence: float


def summarise(values: Sequence[float | None], *, confidence: float = 0.95) -> Summary | None:
    """Geometric mean of a metric's trials with its t interval on logs; None values are left out.

    None where no value is left, or where one of them is zero or less: it has no logarithm. Raises
    ValueError for a value that is not finite.
    """
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not np.isfinite(known).all():
        raise ValueError(f"a value that is not a number: {known.tolist()}")
    if not known.size or known.min() <= 0:
        return None
    logs = np.log(known)
    n, mean = known.size, float(logs.mean())
    spread = float(logs.std(ddof=1)) if n > 1 else None
    reach = None if spread is None else t_quantile(confidence, n - 1) * spread / math.sqrt(n)
    return Summary(
        n=n,
        mean=math.exp(mean),
        minimum=float(known.min()),
        maximum=float(known.max()),
        low=None if reach is None else math.exp(mean - reach),
        high=None if reach is None else math.exp(mean + reach),
        spread=spread,
        confidence=confidence,
    )


def t_quantile(confidence: float, degrees: float) -> float:
    """How many standard errors a two-sided t interval reaches to either side."""
    return float(stdtrit(degrees, (1 + confidence) / 2))
