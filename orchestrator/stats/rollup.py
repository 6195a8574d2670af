"""The value of a point and its interval, from sums that merge: for many points at once.

A point keeps n, the mean of the logs and the sum of squares around it (Welford 1962), so that a
trial is added without reading the others (Chan, Golub and LeVeque 1979).
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
    """What is kept of some finite values; None for what they have not."""

    n: int
    mean: float | None
    mean_log: float | None
    m2_log: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """For each point its value and the bounds of it; NaN where it has none."""

    value: Floats
    low: Floats
    high: Floats


def rolled_up(values: Sequence[float]) -> Rollup:
    """The sums of finite values; logs only where all of them are above zero."""
    if not values:
        return Rollup(n=0, mean=None, mean_log=None, m2_log=None)
    n = len(values)
    mean = math.fsum(values) / n
    if min(values) <= 0:
        return Rollup(n=n, mean=mean, mean_log=None, m2_log=None)
    # By hand: of the few values of a point an array costs more than the sums.
    logs = [math.log(value) for value in values]
    centre = math.fsum(logs) / n
    m2 = math.fsum((each - centre) ** 2 for each in logs)
    return Rollup(n=n, mean=mean, mean_log=centre, m2_log=m2)


def bands(
    n: ArrayLike,
    mean: ArrayLike,
    mean_log: ArrayLike,
    m2_log: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Bands:
    """Geometric means with their t intervals on logs; None and NaN stand for what is not known.

    The arithmetic mean, without an interval, where a value was zero or less. Fewer than
    `LEAST_TRIALS` trials bound nothing.
    """
    count = np.asarray(n, dtype=np.float64)
    plain, centre, m2 = (np.asarray(each, dtype=np.float64) for each in (mean, mean_log, m2_log))
    bounded = (count >= LEAST_TRIALS) & np.isfinite(centre)
    degrees = np.where(bounded, count - 1, 1.0)
    deviation = np.sqrt(np.where(bounded, m2, 0.0) / degrees / np.maximum(count, 1))
    # Thousands of points have a handful of sizes, and the quantile costs more than all else here.
    sizes, place = np.unique(degrees, return_inverse=True)
    reach = stdtrit(sizes, (1 + confidence) / 2)[place] * deviation
    return Bands(
        value=np.where(np.isfinite(centre), np.exp(centre), plain),
        low=np.where(bounded, np.exp(centre - reach), np.nan),
        high=np.where(bounded, np.exp(centre + reach), np.nan),
    )
