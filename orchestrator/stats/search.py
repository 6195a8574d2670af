"""The search for the shifts of one stretch: from many levels to those that can be told apart."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.courses import course_of
from orchestrator.stats.shifts import FEWEST_BESIDE, Noise, Shift, Sums, shift_at
from orchestrator.stats.spikes import MOST_CORRELATION

Floats = NDArray[np.float64]

#: Times ln n: what a further level has to save of the squares, in units of the noise's variance.
PENALTY = 3.0
#: A change whose test gives more is none.
CANDIDATE = 1e-3
#: A new level at the end is looked for among so many values, however little it saves yet.
NEWEST = 12
#: Of the correlation of neighbours: it comes out too small by (1 + BIAS · it) / n for each level
#: (Kendall 1954).
BIAS = 4.0


def shifts_of(calm: Floats, noise: Noise, least: float) -> list[tuple[int, Shift]]:
    """The shifts of a stretch without spikes, each with where it is.

    `least`: the smallest difference of interest. Nothing is found among fewer than 6 values.
    """
    if calm.size < 2 * FEWEST_BESIDE:
        return []
    unit = noise.sigma * math.sqrt(noise.inflation(calm.size))
    course = course_of(calm / unit, PENALTY * math.log(calm.size))
    slope = course.slope * unit
    search = _Search(calm - slope * np.arange(calm.size), noise, least)
    starts = course.starts
    for _ in range(2):
        starts = search.settled(search.pruned(starts))
    starts = search.pruned(search.with_newest(search.pruned(starts)))
    shifts = search.shifts(starts)
    return [(at, shift.raised(slope * at)) for at, shift in zip(starts, shifts, strict=True)]


class _Search:
    """What can be asked of one stretch, given where its levels start."""

    def __init__(self, calm: Floats, noise: Noise, least: float) -> None:
        self._sums, self._n = Sums(calm), calm.size
        self._noise, self._least = noise, least

    def shifts(self, starts: list[int]) -> list[Shift]:
        """A test of each change."""
        bounds = [0, *starts, self._n]
        stretches = zip(bounds, starts, bounds[2:], strict=False)
        return [
            shift_at(self._sums, stretch, replace(self._noise, correlation=sure), likely)
            for stretch, (sure, likely) in zip(stretches, self._correlations(starts), strict=True)
        ]

    def pruned(self, starts: list[int]) -> list[int]:
        """Without those that are not sure, the weakest first."""
        starts = list(starts)
        while starts:
            doubts = [self._doubt(shift) for shift in self.shifts(starts)]
            worst = max(range(len(starts)), key=doubts.__getitem__)
            if doubts[worst] <= CANDIDATE:
                break
            del starts[worst]
        return starts

    def settled(self, starts: list[int]) -> list[int]:
        """Each moved to where it explains the two levels beside it best."""
        bounds = [0, *starts, self._n]
        for place in range(1, len(bounds) - 1):
            before, after = bounds[place - 1], bounds[place + 1]
            if after - before >= 2 * FEWEST_BESIDE:
                bounds[place] = self._sums.best_split(before, after)
        return bounds[1:-1]

    def with_newest(self, starts: list[int]) -> list[int]:
        """With a new level among the newest values, if one begins there: it is just landing.

        Levels have to pay for themselves to be found; those of three values hardly can.
        """
        start = starts[-1] if starts else 0
        places = range(max(start + FEWEST_BESIDE, self._n - NEWEST), self._n - FEWEST_BESIDE + 1)
        doubts = {at: self._doubt(self.shifts([*starts, at])[-1]) for at in places}
        best = min(doubts, key=doubts.__getitem__, default=None)
        return starts if best is None or doubts[best] > CANDIDATE else [*starts, best]

    def _doubt(self, shift: Shift) -> float:
        """Its p; more than 1 where it is too small, the more so the smaller."""
        size = abs(shift.difference)
        return shift.p_value if size >= self._least else 2 - size / self._least

    def _correlations(self, starts: list[int]) -> list[tuple[float, float]]:
        """For each change the correlation of neighbours: what is sure of it, and what is likely.

        Beside a level too many the correlation that made it is gone; beside one too few, a change
        looks like correlation. Likely is half way between, sure is a standard error less.
        """
        bounds = [0, *starts, self._n]
        whole = _Left.of(self._sums, list(pairwise(bounds)), self._n)
        with_it = whole.correlation()
        error = 1 / math.sqrt(self._n)
        found = []
        for a, at, b in zip(bounds, starts, bounds[2:], strict=False):
            one = _Left.of(self._sums, [(a, b)], self._n)
            two = _Left.of(self._sums, [(a, at), (at, b)], self._n)
            likely = (with_it + (whole - two + one).correlation()) / 2
            found.append((max(0.0, likely - error), likely))
        return found


@dataclass(frozen=True, slots=True)
class _Left:
    """What levels leave: squares, products of neighbours, and levels a value."""

    scatter: float
    lagged: float
    levels: float

    @classmethod
    def of(cls, sums: Sums, levels: list[tuple[int, int]], n: int) -> "_Left":
        scatter = sum(sums.scatter(*level) for level in levels)
        return cls(scatter, sum(sums.lagged(*level) for level in levels), len(levels) / n)

    def __add__(self, other: "_Left") -> "_Left":
        return _Left(
            self.scatter + other.scatter, self.lagged + other.lagged, self.levels + other.levels
        )

    def __sub__(self, other: "_Left") -> "_Left":
        return _Left(
            self.scatter - other.scatter, self.lagged - other.lagged, self.levels - other.levels
        )

    def correlation(self) -> float:
        if self.scatter <= 0:
            return 0.0
        rho = self.lagged / self.scatter
        rho += self.levels * (1 + BIAS * max(0.0, rho))
        return min(max(rho, 0.0), MOST_CORRELATION)
