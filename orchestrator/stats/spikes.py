"""The noise of a series that has levels, drifts and lone spikes; and which values are spikes."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A median of absolute deviations, as a standard deviation of normal noise.
MAD_TO_SIGMA = 1.4826
#: Neighbours to each side that a value is held against, and how many sigma it may be off.
NEIGHBOURS, SPIKE_SIGMAS = 2, 3.5
#: Spikes are lone: where more than this share would be some, it is the noise that is wide.
MOST_SPIKES = 0.1
#: Of differences without a middling size (quantised values), so many of the largest are left out.
_TRIMMED = 0.1
#: What of a correlation of neighbours is believed: it is estimated from few values.
MOST_CORRELATION = 0.7
CUT, OF_CUT = 2.0, 0.9205
SURE = 1.0


def noise_of_neighbours(steps: Floats) -> float:
    """The standard deviation of the differences of neighbours, which levels hardly reach."""
    if not steps.size:
        return 0.0
    sizes = np.sort(np.abs(steps - np.median(steps)))
    middling = MAD_TO_SIGMA * float(np.median(sizes))
    if middling > 0:
        return _sharper(sizes, middling)
    kept = sizes[: max(1, math.ceil((1 - _TRIMMED) * sizes.size))]
    return float(np.sqrt(np.mean(kept**2)))


def _sharper(sizes: Floats, sigma: float) -> float:
    """A better estimate than the median's, from all that are not beyond CUT sigma."""
    for _ in range(3):
        sigma = float(np.sqrt(np.mean(np.minimum(sizes, CUT * sigma) ** 2) / OF_CUT))
    return sigma


def correlation_of_neighbours(steps: Floats, sigma: float) -> float:
    """The lag-1 autocorrelation of the noise, 0 to 0.7, from differences with deviation `sigma`.

    Of first-order autoregressive noise, differences of neighbours correlate by −(1 − ρ)/2; few of
    them cross a change of level, and those are cut to 3 sigma. One standard error is taken off:
    what is left is sure.
    """
    if steps.size < 8 or sigma <= 0:
        return 0.0
    cut = np.clip(steps, -3 * sigma, 3 * sigma)
    lag = float(np.dot(cut[1:], cut[:-1]) / np.dot(cut, cut))
    return float(np.clip(1 + 2 * lag - SURE / math.sqrt(steps.size), 0.0, MOST_CORRELATION))


def spikes_of(level: Floats, sigma: float) -> NDArray[np.bool_]:
    """Which values are off the median of their neighbourhood, alone or in pairs (Hampel 1974)."""
    if level.size <= 2 * NEIGHBOURS or sigma <= 0:
        return np.zeros(level.size, dtype=np.bool_)
    padded = np.pad(level, NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    off = np.abs(level - np.median(windows, axis=1))
    limit = max(SPIKE_SIGMAS * sigma, float(np.quantile(off, 1 - MOST_SPIKES)))
    return np.asarray(off > limit, dtype=np.bool_)
