"""The capacity search: it chooses the next rate, and estimates the capacity from the probes.

Capacity is the rate at which a probe meets its objective half of the time. How gradually a server
begins to fail is its slope: the standard deviation of the log rate at which a probe fails. A slope
that is assumed too small gives an interval that is too narrow, so both are estimated together. A
probe at rate r passes with probability 0.02 + 0.96 · Φ(ln(capacity / r) / slope): at any rate, one
probe in fifty gives the wrong result, so no single probe excludes a rate. The estimate is a
posterior distribution on a grid of ln(capacity) and slope; the prior is uniform in ln(capacity),
and gives each slope of the grid the same weight.
(Probabilistic bisection: Horstein 1963; Waeber, Frazier, Henderson 2013. Threshold and slope
together: King-Smith and Rose 1997; Kontsevich and Tyler 1999.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import Any, Optional

#: The slopes of the grid. A steeper server than the first has an interval that is a bit too wide.
SLOPES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
#: Share of probes with the wrong result, for both results.
LAPSE = 0.02
#: The search has converged when the 90 % interval is narrower than this share.
NARROW = 0.04
#: Probes alternate between this number of slopes above and below the estimate. At the estimate
#: itself, they would say most about the capacity, and nothing about the slope.
OFFSET = 0.5
#: Confirmations run at this share of the estimate, where a server with a small slope passes.
CONFIRMED_SHARE = 0.95
#: The lowest rate of a search that fails at `low`: low / 16.
DEEPEST = 16.0
#: With at least this probability the capacity is outside the allowed rates.
SURE = 0.95
#: Distance of the grid's points in ln(capacity). An interval is wider than four of them.
_STEP = 0.01


class CapacityPosterior:
    """The posterior of capacity and slope; the capacity is between `lowest` and `highest` per s."""

    def __init__(self, lowest: float, highest: float) -> None:
        self._first = math.log(lowest)
        cells = max(1, math.ceil((math.log(highest) - self._first) / _STEP))
        #: Slope → weights of the cells of ln(capacity).
        self._weights = {slope: [1.0 / cells / len(SLOPES)] * cells for slope in SLOPES}
        self._capacity = [1.0 / cells] * cells

    def update(self, rate: float, passed: bool) -> None:
        """Apply Bayes' rule for one probe."""
        products = {
            slope: self._multiply(weights, rate, passed, slope)
            for slope, weights in self._weights.items()
        }
        total = math.fsum(map(math.fsum, products.values()))
        self._weights = {
            slope: [weight / total for weight in weights] for slope, weights in products.items()
        }
        self._capacity = [sum(cells) for cells in zip(*self._weights.values())]

    def slope(self) -> float:
        """Return the geometric mean of the slope."""
        shares = {slope: math.fsum(weights) for slope, weights in self._weights.items()}
        return math.exp(sum(share * math.log(slope) for slope, share in shares.items()))

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the rates at these quantiles of the capacity."""
        sums = list(accumulate(self._capacity))
        return tuple(self._quantile(share * sums[-1], sums) for share in shares)

    def share_above(self, rate: float) -> float:
        """Return the probability that the capacity is above `rate`."""
        position = (math.log(rate) - self._first) / _STEP
        cell = min(len(self._capacity) - 1, max(0, math.floor(position)))
        part = min(1.0, max(0.0, cell + 1 - position))
        return part * self._capacity[cell] + math.fsum(self._capacity[cell + 1 :])

    def _multiply(
        self, weights: list[float], rate: float, passed: bool, slope: float
    ) -> list[float]:
        """Return the weights of one slope, multiplied by the probability of the result."""
        scale = (1.0 if passed else -1.0) / (slope * math.sqrt(2.0))
        start = (self._first + _STEP / 2 - math.log(rate)) * scale
        step, half, erf = _STEP * scale, (1.0 - 2.0 * LAPSE) / 2.0, math.erf
        return [weight * (0.5 + half * erf(start + n * step)) for n, weight in enumerate(weights)]

    def _quantile(self, wanted: float, sums: list[float]) -> float:
        cell = min(len(sums) - 1, bisect_left(sums, wanted))
        part = 1.0 - (sums[cell] - wanted) / self._capacity[cell] if self._capacity[cell] else 0.5
        return math.exp(self._first + (cell + part) * _STEP)


class CapacitySearch:
    """The capacity search of one server: `next_rate`, probe, `add_probe`; at None, `outcome`.

    The first probe is at `low`. While all probes pass, the rate doubles, up to `high`. While all
    fail, it halves, down to `lowest`. Then the probes alternate between rates above and below the
    median of the posterior, until its 90 % interval is less than 4 % wide. Then `confirmations`
    consecutive probes must pass at 95 % of the median. All of them update the posterior. After a
    failed one, the search continues and confirms its next estimate from the start.

    If the server fails as the model assumes, the 90 % interval of any search with passed and failed
    probes contains the capacity in about 90 % of searches. Independently of the model, the last
    `confirmations` probes of a search with "converged" all ran at one rate and passed.
    """

    def __init__(
        self, low: float, high: float, max_probes: int, confirmations: int, lowest: float = 0.0
    ) -> None:
        """Rates in requests per second; no probe is below `lowest` or low / 16.

        ValueError for arguments without a possible result.
        """
        if not 0 < low < high < math.inf:
            raise ValueError(f"expected 0 < low < high, got low {low:g} and high {high:g}")
        if lowest > low:
            raise ValueError(f"expected lowest of {low:g} or less, got {lowest:g}")
        if max_probes < 1 or confirmations < 0:
            raise ValueError(
                f"expected max_probes of 1 or more and confirmations of 0 or more, got "
                f"{max_probes} and {confirmations}"
            )
        self._low, self._high, self._deepest = low, high, max(lowest, low / DEEPEST)
        self._left, self._confirmations = max_probes, confirmations
        # One octave more at both ends, so that the capacity can be outside the allowed rates.
        self._posterior = CapacityPosterior(self._deepest / 2, high * 2)
        self._passed: list[float] = []
        self._failed: list[float] = []
        self._estimate: Optional[float] = None
        self._confirmed = 0
        self._stopped: Optional[str] = None

    def next_rate(self) -> Optional[float]:
        """Return the rate of the next probe, the same until `add_probe`; None when the search has
        ended.

        A whole number from 100 on, because some load tools accept no other.
        """
        if self._stopped is not None:
            return None
        return min(self._high, max(self._deepest, _round_rate(self._choose_rate())))

    def add_probe(self, rate: float, passed: bool) -> None:
        """Add the result of the probe at `rate`. ValueError unless it is `next_rate`."""
        expected = self.next_rate()
        if rate != expected:
            state = "the search has ended" if expected is None else f"expected {expected:g}"
            raise ValueError(f"unexpected probe at {rate:g}: {state}")
        self._left -= 1
        (self._passed if passed else self._failed).append(rate)
        self._posterior.update(rate, passed)
        self._update_confirmations(passed)
        self._stopped = self._stop_reason()

    def outcome(self) -> dict[str, Any]:
        """Return {"capacity": r|None, "low": r|None, "high": r|None, "stopped": why}; see
        protocol.py.

        `stopped` is

        - "converged": the interval is narrow, and the last probes confirmed the estimate;
        - "at the limit": the capacity is above `high` of the search, which is returned as "low";
        - "below the start": it is below the lowest allowed rate, which is returned as "high";
        - "budget": the interval was not narrow within `max_probes`, or not confirmed, or not yet.

        With "converged" and "budget", "low" and "high" bound the 90 % interval of the posterior,
        and `capacity` is its median. If all probes passed, only the highest rate is known, as
        "low"; if all failed, the lowest rate, as "high". Then `capacity` is None.
        """
        stopped = self._stopped or "budget"
        if stopped == "at the limit":
            capacity, low, high = None, self._high, None
        elif stopped == "below the start":
            capacity, low, high = None, None, self._deepest
        elif self._is_bracketed():
            low, capacity, high = self._posterior.quantiles(0.05, 0.5, 0.95)
        else:
            capacity = None
            low, high = max(self._passed, default=None), min(self._failed, default=None)
        return {"capacity": capacity, "low": low, "high": high, "stopped": stopped}

    def _choose_rate(self) -> float:
        if self._estimate is not None:
            return CONFIRMED_SHARE * self._estimate
        if not self._failed:
            return 2 * self._passed[-1] if self._passed else self._low
        if not self._passed:
            return self._failed[-1] / 2
        (median,) = self._posterior.quantiles(0.5)
        side = 1.0 if (len(self._passed) + len(self._failed)) % 2 else -1.0
        return median * math.exp(side * OFFSET * self._posterior.slope())

    def _is_bracketed(self) -> bool:
        """Return whether some probes passed and some failed."""
        return bool(self._passed and self._failed)

    def _update_confirmations(self, passed: bool) -> None:
        """Count the confirmations of the estimate; replace it after a failed one."""
        if self._estimate is not None:
            self._confirmed += 1
            if passed:
                return
        low, median, high = self._posterior.quantiles(0.05, 0.5, 0.95)
        narrow = self._is_bracketed() and high / low < 1 + NARROW
        self._estimate = median if narrow else None
        self._confirmed = 0

    def _stop_reason(self) -> Optional[str]:
        if self._estimate is not None and self._confirmed >= self._confirmations:
            return "converged"
        if self._posterior.share_above(self._high) >= SURE:
            return "at the limit"
        if self._posterior.share_above(self._deepest) <= 1 - SURE:
            return "below the start"
        return None if self._left else "budget"


def _round_rate(rate: float) -> float:
    return float(round(rate)) if rate >= 100 else float(f"{rate:.3g}")
