"""The value of a point and its interval, from sums over its runs, for many points at once.

The trials of one run share the state of the machine. So the run is the unit: the value is the
geometric mean of the means of the runs, and their spread gives the interval.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.stats import special
from orchestrator.stats.unpaired import FEWEST_RUNS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollup:
    """The number of runs, the mean of their mean logs, and the sum of squares around it.

    The sums are None if there is no value, or one of zero or less.
    """

    runs: int
    mean_log: float | None
    m2_log: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The value of each point and its bounds; NaN for those that do not exist."""

    value: Floats
    low: Floats
    high: Floats


def roll_up(values: Sequence[float], runs: Sequence[int]) -> Rollup:
    """Return the sums of finite values; `runs[i]` identifies the run of value i."""
    count = len(set(runs))
    if min(values, default=0.0) <= 0:
        return Rollup(runs=count, mean_log=None, m2_log=None)
    # Without numpy: for the few values of a point, an array costs more than the sums.
    logs: dict[int, list[float]] = defaultdict(list)
    for value, run in zip(values, runs, strict=True):
        logs[run].append(math.log(value))
    means = [math.fsum(each) / len(each) for each in logs.values()]
    centre = math.fsum(means) / count
    m2 = math.fsum((each - centre) ** 2 for each in means)
    return Rollup(runs=count, mean_log=centre, m2_log=m2)


def compute_bands(
    runs: ArrayLike,
    mean: ArrayLike,
    mean_log: ArrayLike,
    m2_log: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Bands:
    """Return geometric means with their t intervals on logs; None and NaN are unknown values.

    If a value was zero or less, the mean is arithmetic and has no interval. Fewer than
    `FEWEST_RUNS` runs have no interval: the noise between runs is not known.
    """
    count = np.asarray(runs, dtype=np.float64)
    plain, centre, m2 = (np.asarray(each, dtype=np.float64) for each in (mean, mean_log, m2_log))
    bounded = (count >= FEWEST_RUNS) & np.isfinite(centre)
    degrees = np.where(bounded, count - 1, 1.0)
    deviation = np.sqrt(np.where(bounded, m2, 0.0) / degrees / np.maximum(count, 1))
    # Thousands of points have few distinct numbers, and the quantile is the most expensive step.
    sizes, place = np.unique(degrees, return_inverse=True)
    reach = special.stdtrit(sizes, (1 + confidence) / 2)[place] * deviation
    return Bands(
        value=np.where(np.isfinite(centre), np.exp(centre), plain),
        low=np.where(bounded, np.exp(centre - reach), np.nan),
        high=np.where(bounded, np.exp(centre + reach), np.nan),
    )
