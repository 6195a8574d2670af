"""The end of a trial's warm-up, and the drift of the values after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special

#: Slices averaged into one batch.
BATCH = 5
#: With fewer batches there is no choice: two allow only one cut.
FEWEST_BATCHES = 3
#: With fewer batches, a minimum in the second half is mostly chance.
FEWEST_TO_DENY = 6
#: Batches at the end that are never cut: a few of them may be close together by chance (Hoad,
#: Robinson and Davies 2010).
TAIL = 5
#: The minimum number of slices in each third whose medians are compared.
FEWEST_IN_THIRD = 3
#: Sums of squared deviations below this share of the squared mean are rounding errors.
_ROUNDING = 1e-24

Reason = Literal["too short", "no steady state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """`cut`: leading slices that are warm-up. If it is None, `reason` is set.

    "too short": too few slices for a decision. "no steady state": half of the slices or more would
    have to be cut, so the trial was still changing.
    """

    cut: int | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The change of a series from its first third to its last.

    `share`: the change of the medians, 0.1 is +10 %. `p_value`: of the test whether the series has
    a trend at all.
    """

    share: float
    p_value: float


def compute_mser5(values: Sequence[float]) -> Steady:
    """Return how many leading one-second slices are warm-up, a multiple of 5, by MSER-5 (White
    1997).

    Slices are averaged in batches of five. The cut minimises the squared deviations of the
    remaining batches, divided by the square of their number: the error of their mean. The earliest
    such cut is used. Slices after the last full batch are ignored.

    Fewer than 15 slices are too short; with fewer than 30, the cut is in the first half only. A
    series of noise alone has the result "no steady state" in 24 % of all cases with 30 slices, 15 %
    with 40, 6 % with 200: it is a hint, not a proof. ValueError for values that are not finite.
    """
    series = _check_finite(values)
    count = series.size // BATCH
    if count < FEWEST_BATCHES:
        return Steady(reason="too short")
    batches = series[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    cut = _find_best_cut(batches, _compute_last_cut(count))
    if 2 * cut >= count:
        return Steady(reason="no steady state")
    return Steady(cut=cut * BATCH)


def compute_drift(values: Sequence[float]) -> Drift | None:
    """Compare the medians of the last third and the first, and test for a trend.

    None with fewer than 9 values, or if the first median is not positive and so has no share.
    ValueError for values that are not finite.
    """
    series = _check_finite(values)
    third = series.size // 3
    if third < FEWEST_IN_THIRD:
        return None
    first, last = float(np.median(series[:third])), float(np.median(series[-third:]))
    if first <= 0:
        return None
    return Drift(share=last / first - 1, p_value=_compute_trend_p_value(series))


def _compute_trend_p_value(series: NDArray[np.float64]) -> float:
    """Return the two-sided p value of the slope in a linear regression on time (t test)."""
    if np.ptp(series) == 0:
        return 1.0
    degrees = series.size - 2
    r = abs(float(np.corrcoef(np.arange(series.size), series)[0, 1]))
    unexplained = 1 - r**2
    if unexplained <= 0:
        return 0.0
    return float(2 * special.stdtr(degrees, -r * np.sqrt(degrees / unexplained)))


def _compute_last_cut(count: int) -> int:
    """Return the last cut to consider, in batches."""
    if count < FEWEST_TO_DENY:
        return (count - 1) // 2
    return count - min(TAIL, count // 2)


def _find_best_cut(batches: NDArray[np.float64], furthest: int) -> int:
    errors = np.array(
        [batches[cut:].var() / (batches.size - cut) for cut in range(furthest + 1)],
        dtype=np.float64,
    )
    tolerance = _ROUNDING * float(np.square(batches).max())
    return int(np.argmax(errors <= errors.min() + tolerance))


def _check_finite(values: Sequence[float]) -> NDArray[np.float64]:
    series = np.array(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise ValueError(f"a value that is not a number: {series.tolist()}")
    return series
