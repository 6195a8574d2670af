"""The capacity search: it chooses the next rate, and estimates the capacity from the probes.

Capacity is the rate at which a probe meets its objective half of the time. The estimate is a
posterior distribution of its logarithm on a grid; the prior is uniform. A probe at rate r passes
with probability 0.02 + 0.96 · Φ(ln(capacity / r) / 0.02). Near the capacity the result is random,
and at any rate one probe in fifty gives the wrong result. So no single probe excludes a rate.
(Probabilistic bisection: Horstein 1963; Waeber, Frazier, Henderson 2013.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import Any, Optional

#: Standard deviation of the log rate at which a server begins to fail.
SLOPE = 0.02
#: Share of probes with the wrong result, for both results.
LAPSE = 0.02
#: The 90 % interval is narrow enough when its width is below this share.
NARROW = 0.04
#: Confirmations run at this share of the estimate: 2.5 slopes below, where a stable server passes.
CONFIRMED_SHARE = 0.95
#: The lowest rate of a search that fails at `low`: low / 16.
DEEPEST = 16.0
#: With at least this probability the capacity is outside the allowed rates.
SURE = 0.95
#: Distance of the points of the grid, small compared to SLOPE.
_STEP = SLOPE / 4


class CapacityPosterior:
    """The posterior of the capacity between `lowest` and `highest` requests per second."""

    def __init__(self, lowest: float, highest: float) -> None:
        self._first = math.log(lowest)
        cells = max(1, math.ceil((math.log(highest) - self._first) / _STEP))
        self._weights = [1.0 / cells] * cells

    def update(self, rate: float, passed: bool) -> None:
        """Apply Bayes' rule for one probe."""
        sign = 1.0 if passed else -1.0
        scale = sign / (SLOPE * math.sqrt(2.0))
        start = (self._first + _STEP / 2 - math.log(rate)) * scale
        step, half, erf = _STEP * scale, (1.0 - 2.0 * LAPSE) / 2.0, math.erf
        products = [
            weight * (0.5 + half * erf(start + n * step)) for n, weight in enumerate(self._weights)
        ]
        total = math.fsum(products)
        self._weights = [product / total for product in products]

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the rates at these quantiles of the posterior."""
        sums = list(accumulate(self._weights))
        return tuple(self._quantile(share * sums[-1], sums) for share in shares)

    def share_above(self, rate: float) -> float:
        """Return the probability that the capacity is above `rate`."""
        position = (math.log(rate) - self._first) / _STEP
        cell = min(len(self._weights) - 1, max(0, math.floor(position)))
        part = min(1.0, max(0.0, cell + 1 - position))
        return part * self._weights[cell] + math.fsum(self._weights[cell + 1 :])

    def _quantile(self, wanted: float, sums: list[float]) -> float:
        cell = min(len(sums) - 1, bisect_left(sums, wanted))
        part = 1.0 - (sums[cell] - wanted) / self._weights[cell] if self._weights[cell] else 0.5
        return math.exp(self._first + (cell + part) * _STEP)


class CapacitySearch:
    """The capacity search of one server: `next_rate`, probe, `add_probe`; at None, `outcome`.

    The first probe is at `low`. While all probes pass, the rate doubles, up to `high`. While all
    fail, it halves, down to low / 16. Then each probe is at the median of the posterior, until the
    90 % interval is less than 4 % wide. Then `confirmations` consecutive probes must pass at 95 %
    of the estimate, which is the median at that time. A failed confirmation updates the posterior
    like any probe: the search continues and confirms its next estimate from the start.

    A capacity c with "converged" was the median of the posterior, with a 90 % interval less than 4
    % wide, if the server fails as the model assumes. Independently of the model, the last
    `confirmations` probes all ran at 0.95 · c and passed.
    """

    def __init__(self, low: float, high: float, max_probes: int, confirmations: int) -> None:
        """Rates in requests per second. ValueError for arguments without a possible result."""
        if not 0 < low < high < math.inf:
            raise ValueError(f"expected 0 < low < high, got low {low:g} and high {high:g}")
        if max_probes < 1 or confirmations < 0:
            raise ValueError(
                f"expected max_probes of 1 or more and confirmations of 0 or more, got "
                f"{max_probes} and {confirmations}"
            )
        self._low, self._high, self._deepest = low, high, low / DEEPEST
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

        - "converged": `capacity` is the estimate that was confirmed at 95 % of its rate;
        - "at the limit": the capacity is above `high` of the search, which is returned as "low";
        - "below the start": it is below low / 16 of the search, which is returned as "high";
        - "budget": no estimate was confirmed within `max_probes`, or not yet.

        With "converged" and "budget", "low" and "high" bound the 90 % interval of the posterior. If
        all probes passed, the highest rate is "low"; if all failed, the lowest rate is "high"; the
        other end is None. `capacity` is None unless "converged".
        """
        stopped = self._stopped or "budget"
        low, high = self._capacity_bounds(stopped)
        capacity = self._estimate if stopped == "converged" else None
        return {"capacity": capacity, "low": low, "high": high, "stopped": stopped}

    def _choose_rate(self) -> float:
        if self._estimate is not None:
            return CONFIRMED_SHARE * self._estimate
        if not self._failed:
            return 2 * self._passed[-1] if self._passed else self._low
        if not self._passed:
            return self._failed[-1] / 2
        return self._posterior.quantiles(0.5)[0]

    def _update_confirmations(self, passed: bool) -> None:
        """Count the confirmations of the estimate; replace it after a failed one."""
        if self._estimate is not None:
            self._confirmed += 1
            if passed:
                return
        low, median, high = self._posterior.quantiles(0.05, 0.5, 0.95)
        bracketed = self._passed and self._failed
        narrow = bracketed and high / low < 1 + NARROW
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

    def _capacity_bounds(self, stopped: str) -> tuple[Optional[float], Optional[float]]:
        if stopped == "at the limit":
            return self._high, None
        if stopped == "below the start":
            return None, self._deepest
        if self._passed and self._failed:
            low, high = self._posterior.quantiles(0.05, 0.95)
            return low, high
        return max(self._passed, default=None), min(self._failed, default=None)


def _round_rate(rate: float) -> float:
    return float(round(rate)) if rate >= 100 else float(f"{rate:.3g}")
