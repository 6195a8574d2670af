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


def fit_trend(series: Floats, penalty: float) -> Trend:
    """Return the trend of lowest cost: residual squares plus `penalty` per further level or drift.

    `series` is in units of its noise. Two drifts are tried: the line through all values, and the
    common slope of the levels that are found without a drift.
    """
    plain = _build_trend(series, 0.0, penalty)
    if not plain.starts and _compute_saving(series) < PRICE_OF_DRIFT * penalty:
        return plain
    tried = [plain]
    for slope in {_fit_slope(series, []), _fit_slope(series, plain.starts)}:
        first = _build_trend(series, slope, penalty)
        if first.starts:
            first = _build_trend(series, _fit_slope(series, first.starts), penalty)
        tried.append(first)
    return min(tried, key=lambda course: course.cost)


def _compute_saving(series: Floats) -> float:
    """Return the reduction of the sum of squares by a line through all values."""
    place = np.arange(series.size) - (series.size - 1) / 2
    return float(np.dot(place, series) ** 2 / np.dot(place, place))


def _build_trend(series: Floats, slope: float, penalty: float) -> Trend:
    flat = series - slope * np.arange(series.size)
    starts = find_level_starts(flat, penalty)
    left = sum(float(np.sum((level - level.mean()) ** 2)) for level in np.split(flat, starts))
    price = penalty * (len(starts) + (PRICE_OF_DRIFT if slope else 0.0))
    return Trend(slope=slope, starts=starts, cost=left + price)


def _fit_slope(series: Floats, starts: list[int]) -> float:
    """Return the common slope of the levels, by least squares."""
    along = across = 0.0
    for level in np.split(series, starts):
        place = np.arange(level.size) - (level.size - 1) / 2
        along += float(np.dot(place, level))
        across += float(np.dot(place, place))
    return along / across if across else 0.0
