"""Tests for the difference of two neighbouring levels, given noise, autocorrelation and drift."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special

Floats = NDArray[np.float64]

#: The minimum number of values on each side of a change.
FEWEST_BESIDE = 3
#: A level with at most this many values must begin, or end, with a value that belongs to it.
FEW = 5
#: A level is tested with at most this many values next to the change: older ones may have drifted.
REACH = 60
#: The weight of the noise of the whole series, in values of the two levels.
PRIOR_DEGREES = 10.0
#: A step must explain this much more than a line, in variances of a value, because its position was
#: selected.
AHEAD_OF_A_LINE = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """`sigma` of a value of weight 1, its lower limit, and the `correlation` of neighbours."""

    sigma: float
    floor: float
    correlation: float

    def inflation(self, n: int) -> float:
        """Return the variance of a mean of n, relative to that of independent values."""
        rho = self.correlation
        if rho <= 0:
            return 1.0
        return (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Two levels, the standard error of their difference with `degrees`, and the two-sided p.

    p uses the lower bound of the autocorrelation. `cautious_p` uses the likely value, and accepts
    only a step that explains clearly more than a drift.
    """

    before: float
    after: float
    error: float
    degrees: float
    p_value: float
    cautious_p: float

    @property
    def difference(self) -> float:
        return self.after - self.before

    def raised(self, by: float) -> "Shift":
        """Return the same shift with both levels increased."""
        return replace(self, before=self.before + by, after=self.after + by)


class Sums:
    """Weighted sums over any range of a series, in constant time.

    The weights are the precisions of the values, relative to that of a typical one.
    """

    def __init__(self, series: Floats, weights: Floats) -> None:
        self._series = series
        place = np.arange(series.size, dtype=np.float64)
        between = np.sqrt(weights[1:] * weights[:-1])
        self._w = _accumulate(weights)
        self._y = _accumulate(weights * series)
        self._yy = _accumulate(weights * series**2)
        self._t = _accumulate(weights * place)
        self._tt = _accumulate(weights * place**2)
        self._ty = _accumulate(weights * place * series)
        self._lag = _accumulate(between * series[1:] * series[:-1], 2)
        self._pairs = _accumulate(between * (series[1:] + series[:-1]), 2)
        self._between = _accumulate(between, 2)

    def is_split(self, start: int, at: int, end: int) -> bool:
        """Return whether the values next to `at` are nearer to their own level, if it is short."""
        old, new = self.mean(start, at), self.mean(at, end)
        middle, up = (old + new) / 2, new > old
        if end - at <= FEW and (self._series[at] > middle) != up:
            return False
        return at - start > FEW or (self._series[at - 1] < middle) == up

    def weight(self, start: int, end: int) -> float:
        return float(self._w[end] - self._w[start])

    def mean(self, start: int, end: int) -> float:
        return float(self._y[end] - self._y[start]) / self.weight(start, end)

    def scatter(self, start: int, end: int) -> float:
        """Return the sum of squared deviations from the mean."""
        total = float(self._y[end] - self._y[start])
        square = float(self._yy[end] - self._yy[start])
        return max(0.0, square - total * total / self.weight(start, end))

    def lagged(self, start: int, end: int) -> float:
        """Return the sum of products of neighbours' deviations from the mean."""
        mean = self.mean(start, end)
        products = float(self._lag[end] - self._lag[start + 1])
        pairs = float(self._pairs[end] - self._pairs[start + 1])
        between = float(self._between[end] - self._between[start + 1])
        return products - mean * pairs + mean * mean * between

    def place(self, start: int, end: int) -> float:
        """Return the mean place."""
        return float(self._t[end] - self._t[start]) / self.weight(start, end)

    def slope(self, start: int, end: int) -> float:
        """Return the sum of (place − mean place) · value."""
        total = float(self._y[end] - self._y[start])
        return float(self._ty[end] - self._ty[start]) - self.place(start, end) * total

    def places(self, start: int, end: int) -> float:
        """Return the sum of (place − mean place)²."""
        total = float(self._t[end] - self._t[start])
        return float(self._tt[end] - self._tt[start]) - self.place(start, end) * total

    def best_split(self, start: int, end: int) -> int:
        """Return the best split of start … end into two levels with enough values on each side."""
        places = np.arange(start + FEWEST_BESIDE, end - FEWEST_BESIDE + 1)
        total, whole = self._y[end] - self._y[start], self.weight(start, end)
        left, a = self._y[places] - self._y[start], self._w[places] - self._w[start]
        gain = (left - total * a / whole) ** 2 / (a * (whole - a))
        return int(places[int(np.argmax(gain))])


def _accumulate(values: Floats, zeros: int = 1) -> Floats:
    return np.concatenate([np.zeros(zeros), np.cumsum(values)])


def shift_at(sums: Sums, stretch: tuple[int, int, int], noise: Noise, likely: float) -> Shift:
    """Test the mean of start … at against that of at … end; `stretch` is (start, at, end).

    The variance is that of the two levels, moderated by the noise of the series (Smyth 2004), and
    larger for correlated values. If a line fits the stretch better than a step, the step must be
    significant in addition to that line. `noise` has a lower bound of the correlation, `likely` is
    its likely value.
    """
    start, at, end = stretch
    near = max(start, at - REACH), at, min(end, at + REACH)
    before, after = sums.mean(near[0], at), sums.mean(at, near[2])
    few = at - start < FEWEST_BESIDE or end - at < FEWEST_BESIDE
    if few or not sums.is_split(*near):
        error, degrees, p_value, cautious_p = math.inf, 1.0, 1.0, 1.0
    else:
        error, degrees, p_value = _test_shift(sums, near, noise, 0.0)
        *_, cautious_p = _test_shift(
            sums, near, replace(noise, correlation=likely), AHEAD_OF_A_LINE
        )
    return Shift(
        before=before,
        after=after,
        error=error,
        degrees=degrees,
        p_value=p_value,
        cautious_p=max(p_value, cautious_p),
    )


def _test_shift(
    sums: Sums, stretch: tuple[int, int, int], noise: Noise, ahead: float
) -> tuple[float, float, float]:
    """Return the standard error, its degrees of freedom, and p."""
    start, at, end = stretch
    before, after = at - start, end - at
    scatter = sums.scatter(start, at) + sums.scatter(at, end)
    inflated = noise.inflation(before), noise.inflation(after)
    sigma = _moderate_scatter(scatter, before + after - sum(inflated), noise)
    weights = sums.weight(start, at), sums.weight(at, end)
    error = sigma * math.sqrt(inflated[0] / weights[0] + inflated[1] / weights[1])
    degrees = before / inflated[0] + after / inflated[1] - 2 + PRIOR_DEGREES
    p_value = _compute_p(sums.mean(at, end) - sums.mean(start, at), error, degrees)
    return (
        error,
        degrees,
        max(p_value, _compute_p_given_drift(sums, stretch, scatter, noise, ahead)),
    )


def _moderate_scatter(scatter: float, degrees: float, noise: Noise) -> float:
    degrees = max(0.0, degrees)
    variance = (scatter + PRIOR_DEGREES * noise.sigma**2) / (degrees + PRIOR_DEGREES)
    return max(math.sqrt(variance), noise.floor)


def _compute_p(difference: float, error: float, degrees: float) -> float:
    return float(2 * special.stdtr(degrees, -abs(difference) / error))


def _compute_p_given_drift(
    sums: Sums, stretch: tuple[int, int, int], scatter: float, noise: Noise, ahead: float
) -> float:
    """Return 0 if a step fits the stretch better than a line; else the p of a step with a line."""
    start, at, end = stretch
    n, whole, after = end - start, sums.weight(start, end), sums.weight(at, end)
    of_place = sums.places(start, end)
    of_line = sums.slope(start, end)
    beside_line = sums.scatter(start, end) - of_line**2 / of_place
    ahead *= noise.inflation(n // 2)
    if beside_line > scatter * (1 + ahead / n) or n <= 2 * FEWEST_BESIDE + 2:
        return 0.0
    #: Σ (place − mean place) · step, with step 1 from `at` on.
    common = after * (sums.place(at, end) - sums.place(start, end))
    own = after * (1 - after / whole) - common**2 / of_place
    if own <= 1e-9:
        return 1.0
    along = after * (sums.mean(at, end) - sums.mean(start, end)) - common * of_line / of_place
    step = along / own
    left = max(0.0, beside_line - step * along)
    inflated = noise.inflation(n // 2)
    sigma = _moderate_scatter(left, n - 3 * inflated, noise)
    error = sigma * math.sqrt(inflated / own)
    degrees = max(0.0, n / inflated - 3) + PRIOR_DEGREES
    return _compute_p(step, error, degrees)
