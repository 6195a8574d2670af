"""Whether a machine still gives the number that it used to give for the same work."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Earlier values needed before one is judged.
MIN_EARLIER = 3
#: The median absolute deviation of a normal distribution, times this, is its standard deviation.
MAD_TO_SD = 1.4826
#: How many of these standard deviations are still the noise of the machine.
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


def drift_of(value: float, earlier: Sequence[float], *, tolerance: float) -> Drift | None:
    """How far `value` lies from the median of the earlier values.

    What is allowed is `tolerance`, or NOISE_SD robust standard deviations of the earlier values
    where that is more. None with fewer than MIN_EARLIER values, or where their median is not
    positive: then there is no share to speak of.
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
