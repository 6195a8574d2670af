"""The effect of the order of the two trials of a block, separated from the change.

The trial that is second may meet a warm processor, a full page cache or sockets of the first. In
block i the difference of logs is dᵢ = change + effect · oᵢ + noise. oᵢ is 1 if the contender was
second, and −1 if it was first. This is a linear model with two parameters, so one degree of freedom
less remains than without the effect.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: The order of a block: the contender was second or first.
CONTENDER_SECOND, CONTENDER_FIRST, UNKNOWN = 1, -1, 0
#: With fewer blocks of one order, its mean says little.
FEWEST_OF_AN_ORDER = 2
#: Why an effect is not separated, whatever the number of blocks.
ORDER_UNKNOWN = "the order of the trials in a block is not known"

Floats = NDArray[np.float64]
Orders = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """The change from the first to the second trial of a block, with its interval."""

    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMeans:
    """Columns with a row for each cell; all numbers are logs.

    `mean` is the mean difference with its standard `error` and its `degrees` of freedom.
    `separated`: the effect of the order is removed from both; otherwise `effect` is 0. Its error
    and degrees are `block_error` and `block_degrees`, from the variance between blocks. Those of
    the mean are equal to them unless the mean is `nested`: then they are from the variance between
    builds (`build_variance`). `differences` are without the effect.
    """

    mean: Floats
    error: Floats
    degrees: Floats
    separated: NDArray[np.bool_]
    effect: Floats
    differences: Floats
    block_error: Floats
    block_degrees: Floats
    nested: NDArray[np.bool_]


def compute_block_means(differences: Floats, orders: Orders) -> BlockMeans:
    """Compute the mean of each row of differences, without the effect of the order if possible.

    Both have a row for each cell and a column for each block. The error of a single block is 0.
    """
    n = differences.shape[1]
    second, first = orders == CONTENDER_SECOND, orders == CONTENDER_FIRST
    seconds, firsts = second.sum(axis=1), first.sum(axis=1)
    separated = (np.minimum(seconds, firsts) >= FEWEST_OF_AN_ORDER) & (seconds + firsts == n)
    # Rows without an effect have no order to divide by.
    seconds, firsts = np.where(separated, seconds, 1), np.where(separated, firsts, 1)
    high = np.where(second, differences, 0.0).sum(axis=1) / seconds
    low = np.where(first, differences, 0.0).sum(axis=1) / firsts
    effect = np.where(separated, (high - low) / 2, 0.0)
    cleaned = differences - effect[:, None] * orders
    mean = np.where(separated, (high + low) / 2, differences.mean(axis=1))
    degrees = np.where(separated, n - 2.0, n - 1.0)
    variance = ((cleaned - mean[:, None]) ** 2).sum(axis=1) / np.maximum(degrees, 1)
    weight = np.where(separated, (1 / seconds + 1 / firsts) / 4, 1 / n)
    error = np.sqrt(variance * weight)
    return BlockMeans(
        mean=mean,
        error=error,
        degrees=degrees,
        separated=separated,
        effect=effect,
        differences=cleaned,
        block_error=error,
        block_degrees=degrees,
        nested=np.zeros(mean.shape, dtype=np.bool_),
    )


def find_order(baseline: int, contender: int) -> int:
    """Return the order of a block from the places of its trials; a place of 0 is not known."""
    if not baseline or not contender:
        return UNKNOWN
    return CONTENDER_SECOND if contender > baseline else CONTENDER_FIRST


def explain_unseparated(orders: Orders) -> str:
    """Return why the effect of the order is not separated in these blocks; empty if it is."""
    n = orders.size
    seconds, firsts = (int((orders == each).sum()) for each in (CONTENDER_SECOND, CONTENDER_FIRST))
    if seconds + firsts < n:
        return ORDER_UNKNOWN
    if min(seconds, firsts) >= FEWEST_OF_AN_ORDER:
        return ""
    return (
        f"the contender was first in {firsts} and second in {seconds} blocks; at least "
        f"{FEWEST_OF_AN_ORDER} of each are needed"
    )
