"""The value of a point and its interval, from sums that can be merged, for many points at once.

A point keeps n, the mean of the logs and the sum of squares around it (Welford 1962). So a trial is
added without a read of the others (Chan, Golub and LeVeque 1979).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from orchestrator.stats.estimates import LEAST_TRIALS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollup:
    """The sums of some finite values; None for sums that they do not have."""

    n: int
    mean: float | None
    mean_log: float | None
    m2_log: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The value of each point and its bounds; NaN for those that do not exist."""

    value: Floats
    low: Floats
    high: Floats


def roll_up(values: Sequence[float]) -> Rollup:
    """Return the sums of finite values; logs only if all of them are positive."""
    if not values:
        return Rollup(n=0, mean=None, mean_log=None, m2_log=None)
    n = len(values)
    mean = math.fsum(values) / n
    if min(values) <= 0:
        return Rollup(n=n, mean=mean, mean_log=None, m2_log=None)
    # Without numpy: for the few values of a point, an array costs more than the sums.
    logs = [math.log(value) for value in values]
    centre = math.fsum(logs) / n
    m2 = math.fsum((each - centre) ** 2 for each in logs)
    return Rollup(n=n, mean=mean, mean_log=centre, m2_log=m2)


def compute_bands(
    n: ArrayLike,
    mean: ArrayLike,
    mean_log: ArrayLike,
    m2_log: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Bands:
    """Return geometric means with their t intervals on logs; None and NaN are unknown values.

    If a value was zero or less, the mean is arithmetic and has no interval. Fewer than
    `LEAST_TRIALS` trials have no interval.
    """
    count = np.asarray(n, dtype=np.float64)
    plain, centre, m2 = (np.asarray(each, dtype=np.float64) for each in (mean, mean_log, m2_log))
    bounded = (count >= LEAST_TRIALS) & np.isfinite(centre)
    degrees = np.where(bounded, count - 1, 1.0)
    deviation = np.sqrt(np.where(bounded, m2, 0.0) / degrees / np.maximum(count, 1))
    # Thousands of points have few distinct sizes, and the quantile is the most expensive step.
    sizes, place = np.unique(degrees, return_inverse=True)
    reach = stdtrit(sizes, (1 + confidence) / 2)[place] * deviation
    return Bands(
        value=np.where(np.isfinite(centre), np.exp(centre), plain),
        low=np.where(bounded, np.exp(centre - reach), np.nan),
        high=np.where(bounded, np.exp(centre + reach), np.nan),
    )
