"""The levels that fit a series best: PELT (Killick, Fearnhead and Eckley 2012)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The minimum number of values of a level during the search.
FEWEST_OF_LEVEL = 2


def find_level_starts(series: Floats, weights: Floats, penalty: float) -> list[int]:
    """Return the starts of all levels except the first: least squares plus `penalty` per level.

    `series` is in units of the noise of a value with weight 1. Exact; the time is proportional to
    the length of the series times the length of the levels.
    """
    n = series.size
    mass = np.concatenate([[0.0], np.cumsum(weights)])
    sums = np.concatenate([[0.0], np.cumsum(weights * series)])
    squares = np.concatenate([[0.0], np.cumsum(weights * series**2)])
    cost = np.full(n + 1, np.inf)
    cost[0] = -penalty
    last = np.zeros(n + 1, dtype=np.int64)
    starts = np.empty(n + 1, dtype=np.int64)
    starts[0], count = 0, 1
    for end in range(FEWEST_OF_LEVEL, n + 1):
        if end >= 2 * FEWEST_OF_LEVEL:
            starts[count] = end - FEWEST_OF_LEVEL
            count += 1
        open_ = starts[:count]
        total = sums[end] - sums[open_]
        mean_square = total * total / (mass[end] - mass[open_])
        whole = cost[open_] + squares[end] - squares[open_] - mean_square
        best = int(whole.argmin())
        cost[end], last[end] = whole[best] + penalty, open_[best]
        kept = open_[whole <= cost[end]]
        count = kept.size
        starts[:count] = kept
    return _trace_back(last)


def _trace_back(last: NDArray[np.int64]) -> list[int]:
    starts = []
    at = int(last[-1])
    while at > 0:
        starts.append(at)
        at = int(last[at])
    return starts[::-1]
