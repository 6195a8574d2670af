"""Drift of a host: its new value for the same work against its earlier values.

A sudden change is a value outside of the prediction interval of the earlier ones. A slow change
moves the earlier ones as well. It shows in a moving average against the first values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.comparison import LARGEST_LOG
from orchestrator.stats.summary import compute_t_quantile

Floats = NDArray[np.float64]

#: The number of earlier values that a test needs.
MIN_EARLIER = 3
#: The probability that one of the values of an unchanged host is outside by chance. A host is
#: quarantined if a second run finds the same value outside, on the same side. Simulated (`make
#: bench-detection`), this happens less than once in 10 years of nightly runs.
ALPHA = 0.005
#: The first values with which the moving average of later ones is compared.
FIRST_VALUES = 20
#: The weight of the newest value in the moving average (Roberts 1959).
WEIGHT = 0.1
#: The probability that the average of an unchanged host is outside after any one run.
SLOW_ALPHA = 2e-4
#: Older values than these have no weight.
REMEMBERED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A value against earlier ones. `change` and `allowed` are shares of their mean.

    `low` and `high` bound the earlier values.
    """

    value: float
    mean: float
    low: float
    high: float
    earlier: int
    change: float
    allowed: float

    @property
    def drifted(self) -> bool:
        return _is_beyond(self.change, self.allowed)

    def is_confirmed_by(self, other: "Drift") -> bool:
        """Return whether both are outside, on the same side."""
        return self.drifted and other.drifted and (self.change > 0) == (other.change > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDrift:
    """The moving average of the later values against the mean of the `first` ones, as shares."""

    first: int
    change: float
    allowed: float

    @property
    def drifted(self) -> bool:
        return _is_beyond(self.change, self.allowed)


def measure_drift(
    value: float, earlier: Sequence[float], *, tolerance: float, values: int = 1
) -> Drift | None:
    """Return the deviation of `value` from the geometric mean of the earlier values.

    Allowed is `tolerance`, or the prediction interval t · s · √(1 + 1/n) of the logs if that is
    wider. `values`: how many values of the host are tested together; they share `ALPHA`. None with
    fewer than MIN_EARLIER values, or if one is not positive.
    """
    known = np.array(earlier, dtype=np.float64)
    if known.size < MIN_EARLIER or value <= 0 or not (known > 0).all():
        return None
    logs = np.log(known)
    mean = float(logs.mean())
    reach = _compute_reach(logs, 1.0, ALPHA / values)
    return Drift(
        value=value,
        mean=math.exp(mean),
        low=float(known.min()),
        high=float(known.max()),
        earlier=int(known.size),
        change=math.expm1(math.log(value) - mean),
        allowed=max(tolerance, math.expm1(reach)),
    )


def measure_slow_drift(
    first: Sequence[float], later: Sequence[float], *, values: int = 1
) -> SlowDrift | None:
    """Return the deviation of the moving average of `later`, oldest first, from the first values.

    Allowed is the interval of such an average if the host is unchanged. `values` share
    `SLOW_ALPHA`. None with fewer than FIRST_VALUES first values, without later ones, or if a value
    is not positive.
    """
    known = np.array(first[:FIRST_VALUES], dtype=np.float64)
    recent = np.array(later[-REMEMBERED:], dtype=np.float64)
    if known.size < FIRST_VALUES or not recent.size:
        return None
    if not (known > 0).all() or not (recent > 0).all():
        return None
    logs = np.log(known)
    ages = np.arange(recent.size - 1, -1, -1)
    # Before the first of the later values the average is that of the first ones.
    average = float(np.sum(WEIGHT * (1 - WEIGHT) ** ages * (np.log(recent) - logs.mean())))
    reach = _compute_reach(logs, WEIGHT / (2 - WEIGHT), SLOW_ALPHA / values)
    return SlowDrift(first=known.size, change=math.expm1(average), allowed=math.expm1(reach))


def _is_beyond(change: float, allowed: float) -> bool:
    """Return whether a change is beyond 1 + `allowed`, or 1 / (1 + `allowed`)."""
    return abs(math.log1p(change)) > math.log1p(allowed)


def _compute_reach(logs: Floats, variance: float, alpha: float) -> float:
    """Return how far a mean with this variance, in those of a value, may be from that of `logs`."""
    quantile = compute_t_quantile(1 - alpha, logs.size - 1)
    reach = quantile * float(logs.std(ddof=1)) * math.sqrt(variance + 1 / logs.size)
    return min(reach, LARGEST_LOG)
