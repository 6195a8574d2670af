"""Drift of a machine: its new value for the same work against its earlier values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The number of earlier values that a test needs.
MIN_EARLIER = 3
#: The median absolute deviation of a normal distribution, times this, is its standard deviation.
MAD_TO_SD = 1.4826
#: A deviation of up to this many standard deviations counts as noise.
NOISE_SD = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A value against earlier ones. `change` and `allowed` are shares of the earlier `median`.

    `low` and `high` bound the earlier values.
    """

    value: float
    median: float
    low: float
    high: float
    earlier: int
    change: float
    allowed: float

    @property
    def drifted(self) -> bool:
        return abs(self.change) > self.allowed


def measure_drift(value: float, earlier: Sequence[float], *, tolerance: float) -> Drift | None:
    """Return the deviation of `value` from the median of the earlier values.

    The allowed deviation is `tolerance`, or NOISE_SD robust standard deviations of the earlier
    values if that is larger. None with fewer than MIN_EARLIER values, or if their median is not
    positive and so has no share.
    """
    known = np.array(earlier, dtype=np.float64)
    if known.size < MIN_EARLIER:
        return None
    median = float(np.median(known))
    if not median > 0:
        return None
    noise = float(np.median(np.abs(known - median))) * MAD_TO_SD / median
    return Drift(
        value=value,
        median=median,
        low=float(known.min()),
        high=float(known.max()),
        earlier=int(known.size),
        change=value / median - 1,
        allowed=max(tolerance, NOISE_SD * noise),
    )
