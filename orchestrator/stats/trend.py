"""The trend of a series: levels alone, or levels on a linear drift, whichever fits better."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.segments import find_level_starts

Floats = NDArray[np.float64]

#: A drift has to reduce the sum of squares by this many penalties of a level.
PRICE_OF_DRIFT = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """`starts` of all levels except the first, on a line with `slope` per value; the total
    `cost`."""

    slope: float
    starts: list[int]
    cost: float


def fit_trend(series: Floats, weights: Floats, penalty: float) -> Trend:
    """Return the trend of lowest cost: residual squares plus `penalty` per further level or drift.

    `series` is in units of the noise of a value with weight 1. Two drifts are tried: the line
    through all values, and the common slope of the levels that are found without a drift.
    """
    plain = _build_trend(series, weights, 0.0, penalty)
    if not plain.starts and _compute_saving(series, weights) < PRICE_OF_DRIFT * penalty:
        return plain
    tried = [plain]
    for slope in {_fit_slope(series, weights, []), _fit_slope(series, weights, plain.starts)}:
        first = _build_trend(series, weights, slope, penalty)
        if first.starts:
            own = _fit_slope(series, weights, first.starts)
            first = _build_trend(series, weights, own, penalty)
        tried.append(first)
    return min(tried, key=lambda course: course.cost)


def _compute_saving(series: Floats, weights: Floats) -> float:
    """Return the reduction of the sum of squares by a line through all values."""
    along, across = _project_on_line(series, weights)
    return along**2 / across


def _build_trend(series: Floats, weights: Floats, slope: float, penalty: float) -> Trend:
    flat = series - slope * np.arange(series.size)
    starts = find_level_starts(flat, weights, penalty)
    levels = zip(np.split(flat, starts), np.split(weights, starts), strict=True)
    left = sum(
        float(np.sum(w * (level - np.average(level, weights=w)) ** 2)) for level, w in levels
    )
    price = penalty * (len(starts) + (PRICE_OF_DRIFT if slope else 0.0))
    return Trend(slope=slope, starts=starts, cost=left + price)


def _fit_slope(series: Floats, weights: Floats, starts: list[int]) -> float:
    """Return the common slope of the levels, by weighted least squares."""
    along = across = 0.0
    for level, w in zip(np.split(series, starts), np.split(weights, starts), strict=True):
        products = _project_on_line(level, w)
        along, across = along + products[0], across + products[1]
    return along / across if across else 0.0


def _project_on_line(level: Floats, weights: Floats) -> tuple[float, float]:
    """Return the weighted sums of (place − middle) · value and of (place − middle)²."""
    place = np.arange(level.size, dtype=np.float64)
    place -= np.average(place, weights=weights)
    return float(np.dot(weights * place, level)), float(np.dot(weights * place, place))
