"""The power of a comparison with a fixed number of blocks: the changes that it reports.

It is the probability of the verdicts regressed and improved. Their p value suffices among all
metrics of a run, and the measured change is beyond the margin.

`sigma` is always the standard deviation of a block's log ratio, ln(contender / baseline), the input
of the test. It is not the noise of a trial. If the noise of both trials of a block is independent,
`sigma` is √2 times the noise of one of them (`compute_block_sigma`). Noise that both share, such as
a slow hour of the host, cancels.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import ALPHA, as_change
from orchestrator.stats.paired import FEWEST_BLOCKS

#: The maximum number of rounds of a run, and so of its blocks.
MOST_BLOCKS = 100
#: A detectable change is reported with this probability, and the suggested blocks decide with it.
POWER = 0.8
#: Quantiles of the noise that will be measured. With 200 of them the power is exact to 0.001.
_SHARES = (np.arange(200) + 0.5) / 200
#: Halvings of an interval. The result is exact to a billionth of it.
_HALVINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRule:
    """The condition of regressed and improved: p < `alpha`, and a change beyond `margin`."""

    margin: float
    alpha: float


def build_claim_rule(margin: float, *, family: int) -> ClaimRule:
    """Return the rule for the only change among `family` primary metrics of a run.

    It is the hardest case of Benjamini and Hochberg: each further change would make this one easier
    to find.
    """
    return ClaimRule(margin=margin, alpha=min(ALPHA, Spending().alpha / max(1, family)))


def compute_block_sigma(noise: float) -> float:
    """Return the `sigma` of blocks whose two trials each have `noise`, a standard deviation of
    logs."""
    return math.sqrt(2) * noise


def compute_power(sigma: float, blocks: int, change: float, rule: ClaimRule) -> float:
    """Return the probability that `blocks` report a true `change` (0.05: +5 %).

    By the noncentral t distribution, cut at the margin. A significant change of the wrong sign
    counts as not reported. ValueError for a negative or non-finite `sigma`, and for a change that
    is zero or has no logarithm.
    """
    _check(sigma)
    if not (math.isfinite(change) and change > -1 and change != 0):
        raise ValueError(f"expected a change above −1 other than 0, such as 0.05, got {change}")
    margin = math.log1p(math.copysign(rule.margin, change))
    return _compute_log_power(sigma, blocks, abs(math.log1p(change)), abs(margin), rule.alpha)


def compute_smallest_change(sigma: float, blocks: int, rule: ClaimRule) -> float:
    """Return the increase, as a share (0.05: +5 %), that is reported with probability POWER.

    It is beyond the margin, even without noise. ValueError for a negative or non-finite `sigma`,
    and for fewer blocks than a verdict needs.
    """
    _check(sigma)
    if blocks < FEWEST_BLOCKS:
        raise ValueError(f"a verdict needs at least {FEWEST_BLOCKS} blocks, got {blocks}")
    margin = math.log1p(rule.margin)
    low, high = 0.0, sigma * (float(_compute_distances(blocks, rule.alpha)[-1]) + 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        power = _compute_log_power(sigma, blocks, margin + middle, margin, rule.alpha)
        low, high = (low, middle) if power >= POWER else (middle, high)
    return as_change(margin + high)


def compute_needed_blocks(sigma: float, change: float, rule: ClaimRule) -> int | None:
    """Return the fewest blocks that report `change` (0.05: +5 %) with probability POWER.

    At least FEWEST_BLOCKS. None if MOST_BLOCKS do not suffice; none do for a change within the
    margin. ValueError as for `compute_power`.
    """
    if compute_power(sigma, MOST_BLOCKS, change, rule) < POWER:
        return None
    low, high = FEWEST_BLOCKS - 1, MOST_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        enough = compute_power(sigma, middle, change, rule) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def _compute_log_power(
    sigma: float, blocks: int, effect: float, margin: float, alpha: float
) -> float:
    """Return the probability that a mean of logs is significant, and beyond the margin."""
    if blocks < FEWEST_BLOCKS:
        return 0.0
    if sigma == 0:
        return float(effect > margin)
    needed = np.maximum(margin / sigma, _compute_distances(blocks, alpha))
    return float(special.ndtr((effect / sigma - needed) / _compute_error(blocks)).mean())


@lru_cache(maxsize=1024)
def _compute_distances(blocks: int, alpha: float) -> NDArray[np.float64]:
    """Return the means, in units of sigma, that are significant at quantiles of the measured noise.

    They are in ascending order.
    """
    # The mean, and the effect of the order (`order_effect`).
    degrees = blocks - 2
    measured = np.sqrt(special.chdtri(degrees, 1 - _SHARES) / degrees)
    return np.asarray(special.stdtrit(degrees, 1 - alpha / 2) * measured * _compute_error(blocks))


def _compute_error(blocks: int) -> float:
    """Return the standard error of the mean, in units of sigma, with balanced orders."""
    firsts = blocks // 2
    return math.sqrt((1 / firsts + 1 / (blocks - firsts)) / 4)


def _check(sigma: float) -> None:
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"expected a standard deviation of logs, 0 or more, got {sigma}")
