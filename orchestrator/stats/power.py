"""The power of the paired t test on logs of ratios: the smallest detectable change.

`sigma` is always the standard deviation of a block's log ratio, ln(contender / baseline), the input
of the test. It is not the noise of a trial. If the noise of both trials of a block is independent,
`sigma` is √2 times the noise of one of them (`compute_block_sigma`). Noise that both share, such as
a slow hour of the host, cancels.
"""

import math

from scipy.special import nctdtrinc, stdtrit

#: The maximum number of rounds of a run, and so of its blocks.
MOST_BLOCKS = 100


def compute_block_sigma(noise: float) -> float:
    """Return the `sigma` of blocks whose two trials each have `noise`, a standard deviation of
    logs."""
    return math.sqrt(2) * noise


def compute_smallest_change(
    sigma: float, blocks: int, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the increase, as a share (0.05: +5 %), that is detected with probability `power`.

    By the noncentral t distribution; the equivalent decrease is 1 − 1/(1 + change). ValueError for
    a negative or non-finite `sigma`, fewer than 2 blocks, and shares outside 0 < alpha < power < 1.
    """
    _check(sigma, alpha, power)
    if blocks < 2:
        raise ValueError(f"a paired t test needs at least 2 blocks, got {blocks}")
    distance = _compute_needed_distance(blocks, alpha, power)
    return math.expm1(distance * sigma / math.sqrt(blocks))


def compute_needed_blocks(
    sigma: float, change: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Return the fewest blocks that detect `change` (0.05: +5 %) with probability `power`.

    At least 2, the minimum of the test; the verdict may require more. None if MOST_BLOCKS do not
    suffice. With noise of 1, 2, 3, 5 and 10 % a trial (`compute_block_sigma`) a change of +5 %
    needs 3, 5, 9, 19 and 68. ValueError as for `compute_smallest_change`, and for a change that is
    zero or has no logarithm.
    """
    _check(sigma, alpha, power)
    if not (math.isfinite(change) and change > -1 and change != 0):
        raise ValueError(f"expected a change above −1 other than 0, such as 0.05, got {change}")
    effect = abs(math.log1p(change))
    if not _is_enough(MOST_BLOCKS, sigma, effect, alpha, power):
        return None
    return next(
        blocks
        for blocks in range(2, MOST_BLOCKS + 1)
        if _is_enough(blocks, sigma, effect, alpha, power)
    )


def _is_enough(blocks: int, sigma: float, effect: float, alpha: float, power: float) -> bool:
    return _compute_needed_distance(blocks, alpha, power) * sigma / math.sqrt(blocks) <= effect


def _compute_needed_distance(blocks: int, alpha: float, power: float) -> float:
    """Return the mean, in standard errors, that is detected with `power`.

    This is the noncentrality at which t is below its two-sided critical value in 1 − power of all
    tests. A significant mean of the wrong sign counts as not detected.
    """
    degrees = blocks - 1
    critical = float(stdtrit(degrees, 1 - alpha / 2))
    return float(nctdtrinc(degrees, 1 - power, critical))


def _check(sigma: float, alpha: float, power: float) -> None:
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"expected a standard deviation of logs, 0 or more, got {sigma}")
    if not 0 < alpha < power < 1:
        raise ValueError(f"expected 0 < alpha < power < 1, got alpha {alpha} and power {power}")
