"""Summaries of several trials of one case, and percentiles that a trial supports."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.stats import special

#: Requests that must be beyond a percentile before it is shown.
SUPPORTING_REQUESTS = 10


def is_supported(percentile: float, n: int) -> bool:
    """Return whether n requests support a percentile (0 to 100): n(1 − percentile/100) ≥ 10."""
    # A small tolerance: 100 − 99.9 is slightly less than 0.1 in floating point.
    return n * (100 - percentile) >= 100 * SUPPORTING_REQUESTS - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Trials of one metric. `mean` is geometric; `low` and `high` bound it at `confidence`.

    `spread` is the standard deviation of the logs, about the coefficient of variation. `low`,
    `high` and `spread` are None for a single trial.
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
    """Return the geometric mean of a metric's trials with its t interval on logs; ignore None.

    Return None without values, or if one of them is zero or less: it has no logarithm. Raises
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
    reach = (
        None if spread is None else compute_t_quantile(confidence, n - 1) * spread / math.sqrt(n)
    )
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


def compute_t_quantile(confidence: float, degrees: float) -> float:
    """Return the half width, in standard errors, of a two-sided t interval."""
    return float(special.stdtrit(degrees, (1 + confidence) / 2))
