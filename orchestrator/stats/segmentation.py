"""The search for the shifts of one stretch: from many levels to the significant ones."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.outliers import MOST_CORRELATION
from orchestrator.stats.step_test import FEWEST_BESIDE, Noise, Shift, Sums, shift_at
from orchestrator.stats.trend import fit_trend

Floats = NDArray[np.float64]

#: Times ln n: the reduction of squares by a further level, in units of the noise's variance.
PENALTY = 3.0
#: A change with a larger p value is discarded.
CANDIDATE = 1e-3
#: A new level at the end is searched among this many values, even if it reduces squares little.
NEWEST = 12
#: The bias of the autocorrelation r: the estimate is too small by (1 + BIAS · r) / n for each level
#: (Kendall 1954).
BIAS = 4.0


def find_shifts(
    calm: Floats, weights: Floats, noise: Noise, least: float
) -> list[tuple[int, Shift]]:
    """Return the shifts of a stretch without outliers, each with its position.

    `weights`: the precisions of the values, relative to a typical one. `least`: the smallest
    difference of interest. Fewer than 6 values have no shifts.
    """
    if calm.size < 2 * FEWEST_BESIDE:
        return []
    unit = noise.sigma * math.sqrt(noise.inflation(calm.size))
    course = fit_trend(calm / unit, weights, PENALTY * math.log(calm.size))
    slope = course.slope * unit
    search = _Search(calm - slope * np.arange(calm.size), weights, noise, least)
    starts = course.starts
    for _ in range(2):
        starts = search.move_starts(search.prune_starts(starts))
    starts = search.prune_starts(search.with_newest(search.prune_starts(starts)))
    shifts = search.shifts(starts)
    return [(at, shift.raised(slope * at)) for at, shift in zip(starts, shifts, strict=True)]


class _Search:
    """Tests and moves of the starts of levels within one stretch."""

    def __init__(self, calm: Floats, weights: Floats, noise: Noise, least: float) -> None:
        self._sums, self._n = Sums(calm, weights), calm.size
        self._noise, self._least = noise, least

    def shifts(self, starts: list[int]) -> list[Shift]:
        """Test each change."""
        bounds = [0, *starts, self._n]
        stretches = zip(bounds, starts, bounds[2:], strict=False)
        return [
            shift_at(self._sums, stretch, replace(self._noise, correlation=sure), likely)
            for stretch, (sure, likely) in zip(stretches, self._correlations(starts), strict=True)
        ]

    def prune_starts(self, starts: list[int]) -> list[int]:
        """Remove the changes that are not significant, the weakest first."""
        starts = list(starts)
        while starts:
            doubts = [self._doubt(shift) for shift in self.shifts(starts)]
            worst = max(range(len(starts)), key=doubts.__getitem__)
            if doubts[worst] <= CANDIDATE:
                break
            del starts[worst]
        return starts

    def move_starts(self, starts: list[int]) -> list[int]:
        """Move each start to the best split of its two neighbouring levels."""
        bounds = [0, *starts, self._n]
        for place in range(1, len(bounds) - 1):
            before, after = bounds[place - 1], bounds[place + 1]
            if after - before >= 2 * FEWEST_BESIDE:
                bounds[place] = self._sums.best_split(before, after)
        return bounds[1:-1]

    def with_newest(self, starts: list[int]) -> list[int]:
        """Add a level among the newest values if one begins there.

        It would not be found otherwise: a level of three values hardly reduces squares by its
        penalty.
        """
        start = starts[-1] if starts else 0
        places = range(max(start + FEWEST_BESIDE, self._n - NEWEST), self._n - FEWEST_BESIDE + 1)
        doubts = {at: self._doubt(self.shifts([*starts, at])[-1]) for at in places}
        best = min(doubts, key=doubts.__getitem__, default=None)
        return starts if best is None or doubts[best] > CANDIDATE else [*starts, best]

    def _doubt(self, shift: Shift) -> float:
        """Return the p value; for a shift below `least` more than 1, increasing as it gets
        smaller."""
        size = abs(shift.difference)
        return shift.p_value if size >= self._least else 2 - size / self._least

    def _correlations(self, starts: list[int]) -> list[tuple[float, float]]:
        """Return for each change the autocorrelation: a lower bound, and the likely value.

        A level too many hides the correlation that caused it; a level too few makes a change look
        like correlation. The likely value is the mean of both estimates. The lower bound is one
        standard error less.
        """
        bounds = [0, *starts, self._n]
        whole = _Remainder.compute(self._sums, list(pairwise(bounds)), self._n)
        with_it = whole.correlation()
        error = 1 / math.sqrt(self._n)
        correlations = []
        for a, at, b in zip(bounds, starts, bounds[2:], strict=False):
            one = _Remainder.compute(self._sums, [(a, b)], self._n)
            two = _Remainder.compute(self._sums, [(a, at), (at, b)], self._n)
            likely = (with_it + (whole - two + one).correlation()) / 2
            correlations.append((max(0.0, likely - error), likely))
        return correlations


@dataclass(frozen=True, slots=True)
class _Remainder:
    """The residuals of levels: squares, products of neighbours, and levels per value."""

    scatter: float
    lagged: float
    levels: float

    @classmethod
    def compute(cls, sums: Sums, levels: list[tuple[int, int]], n: int) -> "_Remainder":
        scatter = sum(sums.scatter(*level) for level in levels)
        return cls(scatter, sum(sums.lagged(*level) for level in levels), len(levels) / n)

    def __add__(self, other: "_Remainder") -> "_Remainder":
        return _Remainder(
            self.scatter + other.scatter, self.lagged + other.lagged, self.levels + other.levels
        )

    def __sub__(self, other: "_Remainder") -> "_Remainder":
        return _Remainder(
            self.scatter - other.scatter, self.lagged - other.lagged, self.levels - other.levels
        )

    def correlation(self) -> float:
        if self.scatter <= 0:
            return 0.0
        rho = self.lagged / self.scatter
        rho += self.levels * (1 + BIAS * max(0.0, rho))
        return min(max(rho, 0.0), MOST_CORRELATION)
