"""Which rate to try next in the search for a server's capacity, and what the answers amount to.

Capacity is the rate at which a probe meets its objective half of the time. What is believed of its
logarithm is a distribution over a grid, even at first. A probe at rate r passes with probability
0.02 + 0.96 · Φ(ln(capacity / r) / 0.02): near the capacity it is a matter of chance, and one in
fifty says the opposite of the truth wherever it is. So no single answer shuts out any rate for
good. (Probabilistic bisection: Horstein 1963; Waeber, Frazier, Henderson 2013.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import Any, Optional

#: Standard deviation of the log rate at which a server begins to fail.
SLOPE = 0.02
#: Share of probes that say the opposite of the truth, of either kind.
LAPSE = 0.02
#: The 90 % interval is narrow enough when its ends are this share apart.
NARROW = 0.04
#: This share of the estimate has to be confirmed: 2.5 slopes below it, where a sound server passes.
CONFIRMED_SHARE = 0.95
#: How far below the start a search goes that fails there: low / 16.
DEEPEST = 16.0
#: Believed at least so much, the capacity is beyond the rates that may be tried.
SURE = 0.95
#: Distance of the grid's points: fine enough beside SLOPE.
_STEP = SLOPE / 4


class Belief:
    """What is believed of the capacity, from `lowest` to `highest` requests a second."""

    def __init__(self, lowest: float, highest: float) -> None:
        self._first = math.log(lowest)
        cells = max(1, math.ceil((math.log(highest) - self._first) / _STEP))
        self._weights = [1.0 / cells] * cells

    def learn(self, rate: float, passed: bool) -> None:
        """By Bayes' rule, from one probe."""
        sign = 1.0 if passed else -1.0
        scale = sign / (SLOPE * math.sqrt(2.0))
        start = (self._first + _STEP / 2 - math.log(rate)) * scale
        step, half, erf = _STEP * scale, (1.0 - 2.0 * LAPSE) / 2.0, math.erf
        grown = [
            weight * (0.5 + half * erf(start + n * step)) for n, weight in enumerate(self._weights)
        ]
        total = math.fsum(grown)
        self._weights = [weight / total for weight in grown]

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """The rates below which these shares of the belief lie."""
        sums = list(accumulate(self._weights))
        return tuple(self._quantile(share * sums[-1], sums) for share in shares)

    def above(self, rate: float) -> float:
        """The share that is believed to lie above `rate`."""
        place = (math.log(rate) - self._first) / _STEP
        cell = min(len(self._weights) - 1, max(0, math.floor(place)))
        part = min(1.0, max(0.0, cell + 1 - place))
        return part * self._weights[cell] + math.fsum(self._weights[cell + 1 :])

    def _quantile(self, wanted: float, sums: list[float]) -> float:
        cell = min(len(sums) - 1, bisect_left(sums, wanted))
        part = 1.0 - (sums[cell] - wanted) / self._weights[cell] if self._weights[cell] else 0.5
        return math.exp(self._first + (cell + part) * _STEP)


class Search:
    """The search for one server's capacity: ask `next_rate`, probe, `tell`; at None, `outcome`.

    The first probe is at `low`. While all pass the rate doubles, up to `high`; while all fail it
    halves, down to low / 16. From then on each probe is at the median of what is believed, until
    the 90 % interval is under 4 % wide. Then `confirmations` probes in a row have to pass at 95 %
    of the estimate (the median at that time). One that fails is evidence like any other: the
    search goes on, and confirms its next estimate from the start.

    So for a capacity c that is told with "converged" it is claimed: c is the median of what was
    believed, the 90 % interval round it was under 4 % wide if the server fails as the model says,
    and, whatever the server does, the last `confirmations` probes were all at 0.95 · c and passed.
    """

    def __init__(self, low: float, high: float, max_probes: int, confirmations: int) -> None:
        """Rates in requests a second. ValueError where nothing could be found within them."""
        if not 0 < low < high < math.inf:
            raise ValueError(f"expected 0 < low < high, got low {low:g} and high {high:g}")
        if max_probes < 1 or confirmations < 0:
            raise ValueError(
                f"expected max_probes of 1 or more and confirmations of 0 or more, got "
                f"{max_probes} and {confirmations}"
            )
        self._low, self._high, self._deepest = low, high, low / DEEPEST
        self._left, self._confirmations = max_probes, confirmations
        # An octave more at both ends: that the capacity lies there has to be believable.
        self._belief = Belief(self._deepest / 2, high * 2)
        self._passed: list[float] = []
        self._failed: list[float] = []
        self._estimate: Optional[float] = None
        self._confirmed = 0
        self._stopped: Optional[str] = None

    def next_rate(self) -> Optional[float]:
        """The rate to probe, the same until it is told how that went; None: the search is over.

        Whole from 100 on, as some load tools take no other.
        """
        if self._stopped is not None:
            return None
        return min(self._high, max(self._deepest, _rounded(self._wanted())))

    def tell(self, rate: float, passed: bool) -> None:
        """How the probe at `rate` went. ValueError unless `next_rate` asked for it."""
        asked = self.next_rate()
        if rate != asked:
            wanted = "the search is over" if asked is None else f"tell of the one at {asked:g}"
            raise ValueError(f"nobody asked for a probe at {rate:g}: {wanted}")
        self._left -= 1
        (self._passed if passed else self._failed).append(rate)
        self._belief.learn(rate, passed)
        self._confirm(passed)
        self._stopped = self._end()

    def outcome(self) -> dict[str, Any]:
        """{"capacity": r|None, "low": r|None, "high": r|None, "stopped": why}: see protocol.py.

        `stopped` is

        - "converged": `capacity` is the estimate of which 95 % was confirmed;
        - "at the limit": it is above `high` of the search, which is told as "low";
        - "below the start": it is below low / 16 of the search, which is told as "high";
        - "budget": no estimate was confirmed within `max_probes`; nor before the search is over.

        But for the two in the middle, "low" and "high" bound 90 % of what all probes together let
        one believe. While all have passed, the highest is "low"; while all have failed, the lowest
        is "high"; the other end is None. `capacity` is None in all but the first.
        """
        stopped = self._stopped or "budget"
        low, high = self._bounds(stopped)
        capacity = self._estimate if stopped == "converged" else None
        return {"capacity": capacity, "low": low, "high": high, "stopped": stopped}

    def _wanted(self) -> float:
        if self._estimate is not None:
            return CONFIRMED_SHARE * self._estimate
        if not self._failed:
            return 2 * self._passed[-1] if self._passed else self._low
        if not self._passed:
            return self._failed[-1] / 2
        return self._belief.quantiles(0.5)[0]

    def _confirm(self, passed: bool) -> None:
        """Count the confirmations of an estimate; take the next one where the last one fell."""
        if self._estimate is not None:
            self._confirmed += 1
            if passed:
                return
        low, median, high = self._belief.quantiles(0.05, 0.5, 0.95)
        bracketed = self._passed and self._failed
        narrow = bracketed and high / low < 1 + NARROW
        self._estimate = median if narrow else None
        self._confirmed = 0

    def _end(self) -> Optional[str]:
        if self._estimate is not None and self._confirmed >= self._confirmations:
            return "converged"
        if self._belief.above(self._high) >= SURE:
            return "at the limit"
        if self._belief.above(self._deepest) <= 1 - SURE:
            return "below the start"
        return None if self._left else "budget"

    def _bounds(self, stopped: str) -> tuple[Optional[float], Optional[float]]:
        if stopped == "at the limit":
            return self._high, None
        if stopped == "below the start":
            return None, self._deepest
        if self._passed and self._failed:
            low, high = self._belief.quantiles(0.05, 0.95)
            return low, high
        return max(self._passed, default=None), min(self._failed, default=None)


def _rounded(rate: float) -> float:
    return float(round(rate)) if rate >= 100 else float(f"{rate:.3g}")
