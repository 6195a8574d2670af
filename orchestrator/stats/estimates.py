"""Estimates from several trials with their intervals, and differences between two estimates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.summary import compute_t_quantile, summarise
from orchestrator.stats.unpaired import compute_welch

Statistic = Literal["median", "mean", "min", "max"]
#: Fewer trials have no interval: with two, the t quantile of 12.7 spans powers of ten.
LEAST_TRIALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """The mean that stands for an estimate in tests, with its standard error.

    It may have another scale with the same order, such as logs.
    """

    mean: float
    error: float
    degrees: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`low` and `high` bound it at 95 %; these and `tested` are None with too few trials."""

    value: float
    low: float | None
    high: float | None
    n: int
    tested: MeanEstimate | None = None


def estimate(values: Sequence[float], statistic: Statistic) -> Estimate | None:
    """Return the statistic of finite values; None without values.

    `mean` is geometric, or arithmetic if a value is zero or less. Mean and median have the t
    interval on logs, widened if necessary to contain the estimate. Extremes have no interval, and
    neither has any statistic if a value is zero or less.
    """
    if not values:
        return None
    if statistic in ("min", "max"):
        extreme = min(values) if statistic == "min" else max(values)
        return Estimate(value=extreme, low=None, high=None, n=len(values))
    summary = summarise(values)
    mean = summary.mean if summary else float(np.mean(values))
    centre = float(np.median(values)) if statistic == "median" else mean
    return estimate_around(centre, values)


def estimate_around(centre: float, values: Sequence[float]) -> Estimate:
    """Return `centre` with the t interval on logs of the values, widened to contain it."""
    summary = summarise(values)
    if summary is None or summary.low is None or summary.high is None or summary.n < LEAST_TRIALS:
        return Estimate(value=centre, low=None, high=None, n=len(values))
    low, high = min(summary.low, centre), max(summary.high, centre)
    assert summary.spread is not None
    tested = MeanEstimate(
        mean=math.log(summary.mean),
        error=summary.spread / math.sqrt(summary.n),
        degrees=summary.n - 1,
    )
    return Estimate(value=centre, low=low, high=high, n=len(values), tested=tested)


def change_against(
    value: float, values: Sequence[float], base: float, base_values: Sequence[float]
) -> Estimate | None:
    """Return value / base - 1, with Welch's t interval on the logs of both sides' trials.

    None if the base is zero. `n` counts the trials of the smaller side.
    """
    if base == 0:
        return None
    n = min(len(values), len(base_values))
    change = value / base - 1
    if n < LEAST_TRIALS or min(*values, *base_values) <= 0:
        return Estimate(value=change, low=None, high=None, n=n)
    tested = _compare_means(np.log(values), np.log(base_values))
    reach = _compute_reach(tested)
    low, high = math.expm1(tested.mean - reach), math.expm1(tested.mean + reach)
    return Estimate(value=change, low=min(low, change), high=max(high, change), n=n, tested=tested)


def estimate_difference(
    value: float, values: Sequence[float], base: float, base_values: Sequence[float]
) -> Estimate:
    """Return value - base, with Welch's t interval. `n` counts the trials of the smaller side."""
    n = min(len(values), len(base_values))
    difference = value - base
    if n < LEAST_TRIALS:
        return Estimate(value=difference, low=None, high=None, n=n)
    tested = _compare_means(np.asarray(values, dtype=float), np.asarray(base_values, dtype=float))
    reach = _compute_reach(tested)
    return Estimate(
        value=difference, low=difference - reach, high=difference + reach, n=n, tested=tested
    )


def _compare_means(one: NDArray[np.float64], other: NDArray[np.float64]) -> MeanEstimate:
    """Return the difference of two means (Welch 1947)."""
    error, degrees = compute_welch(one, other)
    return MeanEstimate(mean=float(one.mean() - other.mean()), error=error, degrees=degrees)


def _compute_reach(tested: MeanEstimate) -> float:
    """Return half the 95 % interval."""
    return compute_t_quantile(0.95, tested.degrees) * tested.error
