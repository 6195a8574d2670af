"""How precise the values of a series are, and the weights that follow.

A value is the mean of some trials. Its variance is that between values plus that of its trials
divided by their number: s_between² + s_within² / n. A baseline that hundreds of trials measured has
only the first part; a value of three noisy trials has mostly the second one.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.outliers import estimate_neighbour_noise

Floats = NDArray[np.float64]

#: The weight of the common variance of trials in that of one value, in trials (Smyth 2004).
PRIOR_TRIALS = 4.0
#: Steps of the bisection for the noise between values, each of which halves its uncertainty.
_STEPS = 20


def estimate_errors(
    trials: Sequence[int], squares: Sequence[float | None], *, least: float = 0.0
) -> list[float | None]:
    """Return the standard error of each value by the noise of its trials; None if it is unknown.

    `squares`: the sums of squares of the logs around their mean. The variance of a value is
    moderated by that of all values, so three equal trials are not exact. `least`: the lower limit
    of the noise of one trial, from the calibration of the host.
    """
    known = [
        (n, square)
        for n, square in zip(trials, squares, strict=True)
        if square is not None and n > 1
    ]
    degrees = sum(n - 1 for n, _ in known)
    if not degrees:
        return [None] * len(trials)
    common = sum(square for _, square in known) / degrees
    return [
        math.sqrt(max(_moderate_variance(n, square, common), least**2) / n) if n > 0 else None
        for n, square in zip(trials, squares, strict=True)
    ]


def compute_weights(
    level: Floats, errors: Floats, pieces: Sequence[tuple[int, int]], floor: float
) -> Floats:
    """Return the precision of each value relative to a typical one: their mean is 1.

    `errors` are NaN where they are unknown; such a value is typical. `floor`: the lower limit of
    the noise between values, so that a value of many trials does not decide alone. No difference of
    neighbours crosses `pieces`.
    """
    known = np.isfinite(errors)
    if not known.any() or np.ptp(errors[known]) == 0:
        return np.ones(level.size)
    typical = float(np.sqrt(np.mean(errors[known] ** 2)))
    within = np.where(known, errors, typical) ** 2
    between = max(_estimate_between(level, within, pieces), floor)
    precision = 1 / (between**2 + within)
    return np.asarray(precision / precision.mean(), dtype=np.float64)


def _moderate_variance(n: int, square: float | None, common: float) -> float:
    if square is None:
        return common
    return (square + PRIOR_TRIALS * common) / (max(0, n - 1) + PRIOR_TRIALS)


def _estimate_between(level: Floats, within: Floats, pieces: Sequence[tuple[int, int]]) -> float:
    """Return the noise between values: with it, the scaled differences of neighbours have sigma 1.

    0 if the noise of the trials explains all differences.
    """
    pairs = [(np.diff(level[a:b]), within[a:b][1:] + within[a:b][:-1]) for a, b in pieces]
    steps = np.concatenate([step for step, _ in pairs])
    variances = np.concatenate([variance for _, variance in pairs])
    low, high = 0.0, estimate_neighbour_noise(steps)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        scaled = steps / np.sqrt(np.maximum(variances + 2 * middle**2, 1e-300))
        low, high = (middle, high) if estimate_neighbour_noise(scaled) > 1 else (low, middle)
    return low
