"""Estimates from the trials of several runs with their intervals, and differences between two.

The trials of one run share the state of the machine, so the run is the unit. With fewer than
FEWEST_RUNS runs, the noise between runs is not known, and there is no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special
from orchestrator.stats.comparison import LARGEST_LOG, as_change
from orchestrator.stats.summary import compute_t_quantile
from orchestrator.stats.unpaired import FEWEST_RUNS, compute_welch

Statistic = Literal["median", "mean", "min", "max"]
#: The values of the trials of each run.
Runs = Sequence[Sequence[float]]
CONFIDENCE = 0.95


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
    """`low` and `high` bound it at 95 %; these and `tested` are None with too few runs.

    `n` counts the trials. `paired`: a change between values of common blocks; `n` counts these.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    tested: MeanEstimate | None = None
    paired: bool = False


def estimate(runs: Runs, statistic: Statistic) -> Estimate | None:
    """Return the statistic of finite values; None without values.

    - `mean` is the geometric mean of the means of the runs, with the t interval on their logs. If a
      value is zero or less, it is arithmetic and has no interval.
    - `median` is the median of the medians of the runs. Its interval consists of two of these
      medians (the sign test), and needs 6 runs.
    - `min` and `max` are extremes of all trials, without an interval.
    """
    filled = [run for run in runs if len(run)]
    if not filled:
        return None
    if statistic == "mean":
        return _estimate_mean(filled)
    if statistic == "median":
        return _estimate_median(filled)
    values = [value for run in filled for value in run]
    extreme = min(values) if statistic == "min" else max(values)
    return Estimate(value=extreme, low=None, high=None, n=len(values))


def _estimate_mean(runs: Runs) -> Estimate:
    values = [value for run in runs for value in run]
    logs, tested, n = _average_logs(runs), _test_mean(runs), len(values)
    if logs is None:
        centre = float(np.mean([np.mean(run) for run in runs]))
        return Estimate(value=centre, low=None, high=None, n=n)
    # Without a rounding error: equal sizes of different cases must stay equal.
    value = values[0] if min(values) == max(values) else math.exp(float(logs.mean()))
    if tested is None:
        return Estimate(value=value, low=None, high=None, n=n)
    reach = _compute_reach(tested)
    low, high = compute_exp(tested.mean - reach), compute_exp(tested.mean + reach)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, tested=tested)


def _estimate_median(runs: Runs) -> Estimate:
    medians = sorted(float(np.median(run)) for run in runs)
    low, high = _bound_median(medians)
    centre, n = float(np.median(medians)), sum(map(len, runs))
    return Estimate(value=centre, low=low, high=high, n=n, tested=_test_mean(runs))


def estimate_merged(centre: float, runs: Runs) -> Estimate:
    """Return a statistic of all requests together. It has no interval."""
    filled = [run for run in runs if len(run)]
    n = sum(map(len, filled))
    return Estimate(value=centre, low=None, high=None, n=n, tested=_test_mean(filled))


def change_against(
    value: float, runs: Runs, base: float, base_runs: Runs, *, are_means: bool
) -> Estimate | None:
    """Return value / base - 1, with Welch's t interval on the mean logs of the runs.

    `are_means`: both are means as of `estimate`; a change of other statistics has no interval.
    None if the base is zero. `n` counts the trials of the smaller side.
    """
    if base == 0:
        return None
    change, n = value / base - 1, _count_smaller(runs, base_runs)
    logs, base_logs = _average_logs(runs), _average_logs(base_runs)
    if logs is None or base_logs is None or min(len(logs), len(base_logs)) < FEWEST_RUNS:
        return Estimate(value=change, low=None, high=None, n=n)
    tested = _compare_means(logs, base_logs)
    if not are_means:
        return Estimate(value=change, low=None, high=None, n=n, tested=tested)
    low, high = _bound_change(tested)
    return Estimate(value=change, low=low, high=high, n=n, tested=tested)


def bound_change(change: float, tested: MeanEstimate, n: int, *, are_means: bool) -> Estimate:
    """Return a paired change, given the mean difference of the logs.

    With `are_means` the change is that of this mean, with its 95 % interval; else it is `change`.
    """
    if not are_means:
        return Estimate(value=change, low=None, high=None, n=n, tested=tested, paired=True)
    low, high = _bound_change(tested)
    value = as_change(tested.mean)
    return Estimate(value=value, low=low, high=high, n=n, tested=tested, paired=True)


def estimate_difference(
    value: float, runs: Runs, base: float, base_runs: Runs, *, are_means: bool
) -> Estimate:
    """Return value - base, with Welch's t interval on the means of the runs.

    The errors of the geometric means are those of their logs times the means. `are_means` and `n`
    are as in `change_against`.
    """
    difference, n = value - base, _count_smaller(runs, base_runs)
    logs, base_logs = _average_logs(runs), _average_logs(base_runs)
    if logs is None or base_logs is None or min(len(logs), len(base_logs)) < FEWEST_RUNS:
        return Estimate(value=difference, low=None, high=None, n=n)
    error, degrees = compute_welch(value * logs, base * base_logs)
    tested = MeanEstimate(mean=difference, error=error, degrees=degrees)
    return bound_difference(tested, n, are_means=are_means, paired=False)


def bound_difference(
    tested: MeanEstimate, n: int, *, are_means: bool, paired: bool = True
) -> Estimate:
    """Return the difference `tested`, with its 95 % interval if it is of means."""
    mean = tested.mean
    reach = _compute_reach(tested) if are_means else None
    low, high = (None, None) if reach is None else (mean - reach, mean + reach)
    return Estimate(value=mean, low=low, high=high, n=n, tested=tested, paired=paired)


def compute_exp(log: float) -> float:
    """Return e to a power; a bound that no number can hold is a huge one."""
    return math.exp(min(log, LARGEST_LOG))


def _average_logs(runs: Runs) -> NDArray[np.float64] | None:
    """Return the mean log of each run; None without values, or if one is zero or less."""
    filled = [np.asarray(run, dtype=np.float64) for run in runs if len(run)]
    if not filled or min(float(run.min()) for run in filled) <= 0:
        return None
    return np.array([float(np.log(run).mean()) for run in filled])


def _test_mean(runs: Runs) -> MeanEstimate | None:
    logs = _average_logs(runs)
    if logs is None or len(logs) < FEWEST_RUNS:
        return None
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return MeanEstimate(mean=float(logs.mean()), error=error, degrees=len(logs) - 1)


def _bound_median(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the bounds of the median by the sign test; None if there are too few values."""
    n = len(ordered)
    tail = (1 - CONFIDENCE) / 2
    rank = sum(special.bdtr(k, n, 0.5) <= tail for k in range(n // 2))
    return (ordered[rank - 1], ordered[-rank]) if rank else (None, None)


def _compare_means(one: NDArray[np.float64], other: NDArray[np.float64]) -> MeanEstimate:
    """Return the difference of two means (Welch 1947)."""
    error, degrees = compute_welch(one, other)
    return MeanEstimate(mean=float(one.mean() - other.mean()), error=error, degrees=degrees)


def _bound_change(tested: MeanEstimate) -> tuple[float, float]:
    """Return the 95 % interval of a change, given that of the difference of logs."""
    reach = _compute_reach(tested)
    return as_change(tested.mean - reach), as_change(tested.mean + reach)


def _compute_reach(tested: MeanEstimate) -> float:
    """Return half the 95 % interval."""
    return compute_t_quantile(CONFIDENCE, tested.degrees) * tested.error


def _count_smaller(one: Runs, other: Runs) -> int:
    """Return the number of trials of the smaller side."""
    return min(sum(map(len, one)), sum(map(len, other)))
