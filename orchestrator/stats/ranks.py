"""Simultaneous intervals of the ranks of several estimates.

Each pair of estimates is compared by Welch's test, and the p values are corrected by Holm. At 95 %,
all orders that the intervals claim are true. An estimate without a standard error may have
any rank.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from orchestrator.stats.estimates import MeanEstimate

#: More estimates are not tested: their number of pairs grows with the square.
MOST_TESTED = 500
ALPHA = 0.05

Floats = NDArray[np.float64]


class RankInterval(NamedTuple):
    """The best and the worst possible rank, from 1."""

    best: int
    worst: int


def compute_rank_intervals(
    means: Sequence[MeanEstimate | None], *, falling: bool
) -> list[RankInterval]:
    """Return the interval of each rank; `means` are in the order of the ranking, the best first.

    `falling`: the largest is the best. None is an estimate without a standard error. The claims of
    all intervals together are wrong with a probability of at most 5 % (Holm 1979). Of more than
    MOST_TESTED means, no order is claimed.
    """
    count = len(means)
    known = [place for place, each in enumerate(means) if each is not None]
    before = np.zeros(count, dtype=np.int64)
    after = np.zeros(count, dtype=np.int64)
    if 2 <= len(known) <= MOST_TESTED:
        first, second = _find_sure_pairs(
            [each for each in means if each is not None], falling=falling
        )
        places = np.array(known)
        # The first of a pair is surely before the second.
        np.add.at(before, places[second], 1)
        np.add.at(after, places[first], 1)
    return [
        RankInterval(best=1 + ahead, worst=count - behind)
        for ahead, behind in zip(before.tolist(), after.tolist(), strict=True)
    ]


def _find_sure_pairs(
    means: Sequence[MeanEstimate], *, falling: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the pairs whose order is proven, first and second."""
    first, second = np.triu_indices(len(means), k=1)
    mean, error, degrees = (
        np.array([getattr(each, name) for each in means], dtype=np.float64)
        for name in ("mean", "error", "degrees")
    )
    p_values = _test_pairs(
        np.abs(mean[first] - mean[second]),
        (error[first], error[second]),
        (degrees[first], degrees[second]),
    )
    # The tested mean of a median may be in another order than the medians: then nothing is sure.
    agrees = (mean[first] > mean[second]) == falling
    sure = _reject_by_holm(p_values) & agrees
    return first[sure], second[sure]


def _test_pairs(
    distance: Floats, errors: tuple[Floats, Floats], degrees: tuple[Floats, Floats]
) -> Floats:
    """Return the two-sided p value of each pair (Welch 1947, Satterthwaite 1946)."""
    first, second = errors[0] ** 2, errors[1] ** 2
    both = first + second
    exact = both == 0
    safe = np.where(exact, 1.0, both)
    share = first / safe
    spread = share**2 / degrees[0] + (1 - share) ** 2 / degrees[1]
    together = np.where(exact, 1.0, 1 / np.where(exact, 1.0, spread))
    p_values = 2 * stdtr(together, -distance / np.sqrt(safe))
    return np.asarray(np.where(exact, np.where(distance > 0, 0.0, 1.0), p_values))


def _reject_by_holm(p_values: Floats) -> NDArray[np.bool_]:
    order = np.argsort(p_values, kind="stable")
    limits = ALPHA / np.arange(p_values.size, 0, -1)
    kept = p_values[order] > limits
    rejected = int(kept.argmax()) if kept.any() else p_values.size
    result = np.zeros(p_values.size, dtype=np.bool_)
    result[order[:rejected]] = True
    return result
