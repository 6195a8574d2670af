"""Which change a comparison can see: the power of the paired t test on logs of ratios.

`sigma` is always the standard deviation of a block's log ratio, ln(contender / baseline): what
the test works on. It is not the noise of a trial. Where both trials of a block are noisy
independently of each other, `sigma` is √2 times the noise of one of them (`sigma_of_blocks`);
noise that both share, such as a slow hour of the host, cancels.
"""

import math

from scipy.special import nctdtrinc, stdtrit

#: More blocks than these nobody waits for.
MOST_BLOCKS = 200


def sigma_of_blocks(noise: float) -> float:
    """The `sigma` of blocks whose two trials each have `noise`, a standard deviation of logs."""
    return math.sqrt(2) * noise


def smallest_change(sigma: float, blocks: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The change, as a share upwards (0.05: +5 %), found real with probability `power`.

    By the noncentral t distribution; a fall of the same reach is 1 − 1/(1 + change). ValueError
    where `sigma` is negative or not finite, with fewer than 2 blocks, and for shares outside
    0 < alpha < power < 1.
    """
    _check(sigma, alpha, power)
    if blocks < 2:
        raise ValueError(f"a paired t test needs at least 2 blocks, got {blocks}")
    distance = _distance_needed(blocks, alpha, power)
    return math.expm1(distance * sigma / math.sqrt(blocks))


def blocks_needed(
    sigma: float, change: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Fewest blocks that find `change` (0.05: +5 %; −0.05: −5 %) with probability `power`.

    From 2 on, which is what the test itself needs: what judges may ask for more. None where
    MOST_BLOCKS do not suffice. With noise of 1, 2, 3, 5 and 10 % a trial (`sigma_of_blocks`) a
    change of +5 % needs 3, 5, 9, 19 and 68. ValueError as for `smallest_change`, and for a change
    that is none or has no logarithm.
    """
    _check(sigma, alpha, power)
    if not (math.isfinite(change) and change > -1 and change != 0):
        raise ValueError(f"expected a change above −1 other than 0, such as 0.05, got {change}")
    effect = abs(math.log1p(change))
    if not _suffice(MOST_BLOCKS, sigma, effect, alpha, power):
        return None
    return next(
        blocks
        for blocks in range(2, MOST_BLOCKS + 1)
        if _suffice(blocks, sigma, effect, alpha, power)
    )


def _suffice(blocks: int, sigma: float, effect: float, alpha: float, power: float) -> bool:
    return _distance_needed(blocks, alpha, power) * sigma / math.sqrt(blocks) <= effect


def _distance_needed(blocks: int, alpha: float, power: float) -> float:
    """How many standard errors the mean must lie from none to be found with `power`.

    The noncentrality at which t falls short of its two-sided critical value in 1 − power of all
    tests; a mean found on the wrong side of none counts as not found.
    """
    degrees = blocks - 1
    critical = float(stdtrit(degrees, 1 - alpha / 2))
    return float(nctdtrinc(degrees, 1 - power, critical))


def _check(sigma: float, alpha: float, power: float) -> None:
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"expected a standard deviation of logs, 0 or more, got {sigma}")
    if not 0 < alpha < power < 1:
        raise ValueError(f"expected 0 < alpha < power < 1, got alpha {alpha} and power {power}")
