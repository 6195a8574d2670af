"""The noise of a series with levels, drifts and lone outliers; and the indices of outliers."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: This share of the largest differences is trimmed; the factor for the remaining deviation.
TRIMMED, OF_TRIMMED = 0.2, 0.6616
#: Neighbours on each side that a value is compared with, and its limit in sigma.
NEIGHBOURS, SPIKE_SIGMAS = 2, 3.5
#: If more than this share would be outliers, the noise is wide and there are none.
MOST_SPIKES, SOME_SPIKES = 0.05, 2
#: The upper limit of the autocorrelation: it is estimated from few values.
MOST_CORRELATION = 0.7


def estimate_neighbour_noise(steps: Floats) -> float:
    """Return the standard deviation of the differences of neighbours; levels hardly affect it.

    It is estimated from the smaller differences. Unlike a median, it works for series with two, or
    few, distinct values.
    """
    if not steps.size:
        return 0.0
    sizes = np.sort(np.abs(steps - np.median(steps)))
    kept = sizes[: max(1, math.ceil((1 - TRIMMED) * sizes.size))]
    return float(np.sqrt(np.mean(kept**2))) / OF_TRIMMED


def estimate_neighbour_correlation(steps: Floats, sigma: float) -> float:
    """Return the lag-1 autocorrelation of the noise, 0 to 0.7, from differences of deviation
    `sigma`.

    In first-order autoregressive noise, differences of neighbours correlate by −(1 − ρ)/2. Few of
    them cross a change of level, and those are clipped to 3 sigma. One standard error is
    subtracted, so the result is a lower bound.
    """
    if steps.size < 8 or sigma <= 0:
        return 0.0
    cut = np.clip(steps, -3 * sigma, 3 * sigma)
    lag = float(np.dot(cut[1:], cut[:-1]) / np.dot(cut, cut))
    return float(np.clip(1 + 2 * lag - 1 / math.sqrt(steps.size), 0.0, MOST_CORRELATION))


def find_spikes(level: Floats, weights: Floats, sigma: float) -> NDArray[np.bool_]:
    """Find values off the median of their neighbourhood, alone or in pairs (Hampel 1974).

    `sigma`: of a value of weight 1. Less precise values may be farther off.
    """
    if level.size <= 2 * NEIGHBOURS or sigma <= 0:
        return np.zeros(level.size, dtype=np.bool_)
    padded = np.pad(level, NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    # A value is at most as far off as the neighbours that it is compared with allow.
    off = np.abs(level - np.median(windows, axis=1)) * np.sqrt(np.minimum(weights, 1.0))
    most = max(SOME_SPIKES, math.ceil(MOST_SPIKES * level.size))
    limit = max(SPIKE_SIGMAS * sigma, float(np.sort(off)[-most - 1]))
    return np.asarray(off > limit, dtype=np.bool_)
