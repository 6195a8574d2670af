"""Change points: the commits at which the level of a series shifts.

1. Lone outliers are found first and ignored as evidence (`spikes`).
2. PELT finds the levels that fit the series best (`levels`). Its penalty is in units of the noise,
   whose autocorrelation is estimated first.
3. Each change is tested (`shifts`), from the weakest up. Two levels are merged if their change is
   not significant, too small or explained by a drift. Then each remaining change moves to its best
   position.

Killick et al. 2012 (PELT); Hampel 1974; the pruning after Fleming et al., arXiv 2301.03034.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.outliers import (
    estimate_neighbour_correlation,
    estimate_neighbour_noise,
    find_spikes,
)
from orchestrator.stats.precision import compute_weights
from orchestrator.stats.segmentation import find_shifts
from orchestrator.stats.step_test import Noise, Shift
from orchestrator.stats.summary import compute_t_quantile

Floats = NDArray[np.float64]

ALERT = 1e-4
CONFIDENCE = 0.95
#: A series is unstable with at least this many changes and more than one per POINTS_A_CHANGE
#: points, or with this many returns to an earlier level.
FEWEST_TO_BE_UNSTABLE, POINTS_A_CHANGE, RETURNS = 3, 20, 3
#: The exponential of a larger logarithm overflows.
_MOST_OF_A_LOG = 700.0
#: Larger values, squared and summed, would exceed the precision of the others.
_MOST_OF_A_SHARE = 1e6
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`index`: the first value of the new level. `change`: after/before − 1, in `low` … `high`.

    The bounds and `p_value` hold for a position known beforehand (bounds: 95 %). The selection of
    the position is paid for by a small threshold for `p_value`.
    """

    index: int
    before: float
    after: float
    change: float
    low: float
    high: float
    p_value: float
    kind: Literal["alert", "candidate"]
    regressed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The analysis of a series. `outliers` are indices; `noise` is one sigma, as a share.

    `unstable`: there are too many changes, or returns to a former level, for an alert.
    """

    points: tuple[Change, ...]
    outliers: tuple[int, ...]
    noise: float
    unstable: bool


def find_changes(
    values: Sequence[float | None],
    *,
    errors: Sequence[float | None] = (),
    lower_is_better: bool = True,
    floor: float = 0.005,
    least: float = 0.01,
    breaks: Iterable[int] = (),
) -> Changes:
    """Find the changes of a series, oldest value first; None, NaN and infinities are gaps.

    `errors`: the standard errors of the values by the noise within each, as shares; None if
    unknown. Precise values count more (`precision`). `floor`: the lower limit of the noise between
    values, as a share. `least`: the smallest change of interest. `breaks`: indices at which the
    configuration or the machine changes. No level spans a break, and a break is not a change.

    A series with a zero or a negative value has no logarithms. Then the analysis uses differences
    as shares of the typical size, also for a change between levels without a ratio. Fewer than 6
    values between two breaks have no changes. Every input has a result.
    """
    raw = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    places = np.flatnonzero(np.isfinite(raw))
    scale = _Scale(raw[places])
    levels, borders = scale.levels(raw[places]), sorted(set(breaks))
    series = _Series(places, levels, _select_errors(errors, places), borders, floor)
    shifts = series.shifts(math.log1p(least) if scale.logs else least)
    unstable = _is_unstable([shift for _, shift in shifts], series.noise.sigma, places.size)
    return Changes(
        points=tuple(
            _change(index, shift, scale, lower_is_better, unstable) for index, shift in shifts
        ),
        outliers=tuple(places[series.spikes].tolist()),
        noise=series.noise.sigma,
        unstable=unstable,
    )


class _Scale:
    """Centred logarithms if all values are positive, else centred shares of the typical size."""

    def __init__(self, known: Floats) -> None:
        self.logs = bool((known > 0).all())
        largest = float(np.abs(known).max(initial=0.0)) or 1.0
        typical = float(np.median(np.abs(known / largest))) if known.size else 1.0
        self._size = typical * largest or largest

    def levels(self, known: Floats) -> Floats:
        if self.logs:
            return np.asarray(np.log(known) - math.log(self._size), dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.clip(known / self._size, -_MOST_OF_A_SHARE, _MOST_OF_A_SHARE)

    def value(self, level: float) -> float:
        return math.exp(level + math.log(self._size)) if self.logs else level * self._size

    def change(self, before: float, difference: float) -> float:
        if self.logs:
            return math.expm1(min(difference, _MOST_OF_A_LOG))
        has_ratio = before > 0 and before + difference > -_ROUNDING
        return difference / before if has_ratio else difference


class _Series:
    """One series on its scale: its noise, its outliers, and the search for its shifts."""

    def __init__(
        self,
        places: NDArray[np.intp],
        level: Floats,
        errors: Floats,
        breaks: list[int],
        floor: float,
    ) -> None:
        self._places, self._level = places, level
        borders = np.searchsorted(places, breaks).tolist()
        self._pieces = _list_pieces([0, *borders, places.size])
        self._weights = compute_weights(level, errors, self._pieces, floor)
        self.spikes = np.zeros(level.size, dtype=np.bool_)
        limit = max(estimate_neighbour_noise(self._steps()) / math.sqrt(2), floor)
        for start, end in self._pieces:
            self.spikes[start:end] = find_spikes(level[start:end], self._weights[start:end], limit)
        self.noise = self._noise(floor)

    def _noise(self, floor: float) -> Noise:
        steps = self._steps()
        sigma = estimate_neighbour_noise(steps)
        correlation = estimate_neighbour_correlation(steps, sigma)
        apart = math.sqrt(2 * (1 - correlation))
        return Noise(sigma=max(sigma / apart, floor), floor=floor, correlation=correlation)

    def _steps(self) -> Floats:
        """Return the differences of neighbours, scaled to those of values of weight 1."""
        parts = []
        for start, end in self._pieces:
            kept = ~self.spikes[start:end]
            variances = 1 / self._weights[start:end][kept]
            typical = np.sqrt((variances[1:] + variances[:-1]) / 2)
            parts.append(np.diff(self._level[start:end][kept]) / typical)
        return np.concatenate([*parts, np.empty(0)])

    def shifts(self, least: float) -> list[tuple[int, Shift]]:
        shifts = []
        for start, end in self._pieces:
            kept = np.flatnonzero(~self.spikes[start:end]) + start
            found = find_shifts(self._level[kept], self._weights[kept], self.noise, least)
            for at, shift in found:
                shifts.append((self._index(int(kept[at]), shift), shift))
        return shifts

    def _index(self, at: int, shift: Shift) -> int:
        """Return the index of the first value of the new level; include outliers that precede
        it."""
        middle = (shift.before + shift.after) / 2
        while self.spikes[at - 1] and (self._level[at - 1] > middle) == (shift.difference > 0):
            at -= 1
        return int(self._places[at])


def _select_errors(errors: Sequence[float | None], places: NDArray[np.intp]) -> Floats:
    """Return the errors of the known values; NaN if they are unknown."""
    if not errors:
        return np.full(places.size, math.nan)
    known = [math.nan if error is None else error for error in errors]
    return np.array(known, dtype=np.float64)[places]


def _list_pieces(borders: list[int]) -> list[tuple[int, int]]:
    ends = sorted(set(borders))
    return list(pairwise(ends))


def _is_unstable(shifts: list[Shift], sigma: float, n: int) -> bool:
    if len(shifts) >= FEWEST_TO_BE_UNSTABLE and len(shifts) * POINTS_A_CHANGE > n:
        return True
    levels = [shift.before for shift in shifts] + [shift.after for shift in shifts[-1:]]
    returns = sum(
        any(abs(level - former) <= sigma for former in levels[: max(0, place - 1)])
        for place, level in enumerate(levels)
    )
    return returns >= RETURNS


def _change(
    index: int, shift: Shift, scale: _Scale, lower_is_better: bool, unstable: bool
) -> Change:
    reach = compute_t_quantile(CONFIDENCE, shift.degrees) * shift.error
    bounds = [scale.change(shift.before, shift.difference + side) for side in (-reach, 0.0, reach)]
    low, change, high = sorted(bounds)
    sure = shift.cautious_p <= ALERT and not unstable
    return Change(
        index=index,
        before=scale.value(shift.before),
        after=scale.value(shift.after),
        change=change,
        low=low,
        high=high,
        p_value=shift.p_value,
        kind="alert" if sure else "candidate",
        regressed=(shift.difference > 0) == lower_is_better,
    )
