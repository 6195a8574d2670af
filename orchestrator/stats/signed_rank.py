"""The Hodges-Lehmann estimate of the centre of paired differences, with its exact interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

#: With fewer pairs a 95 % interval is the whole range of the data, or does not exist.
FEWEST_PAIRS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """`estimate` and its interval, in the unit of the differences."""

    estimate: float
    low: float
    high: float


def estimate_hodges_lehmann(differences: Sequence[float], *, confidence: float = 0.95) -> Centre:
    """Return the median of the pairwise (Walsh) averages, with the interval of Wilcoxon's test.

    For any symmetric distribution the coverage is exact and at least `confidence`. With too few
    differences for that, the interval is the whole range. Raises ValueError for fewer than 7.
    Source: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3.2 and 3.3.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < FEWEST_PAIRS:
        raise ValueError(f"{values.size} differences: at least {FEWEST_PAIRS} are needed")
    first, second = np.triu_indices(values.size)
    walsh = np.sort((values[first] + values[second]) / 2)
    rank = compute_rank(values.size, (1 - confidence) / 2)
    return Centre(
        estimate=float(np.median(walsh)), low=float(walsh[rank - 1]), high=float(walsh[-rank])
    )


@lru_cache(maxsize=256)
def compute_rank(n: int, tail: float) -> int:
    """Return the rank, from 1, of the Walsh average that bounds the interval.

    It is the last k with P(W < k) ≤ tail.
    """
    below = np.cumsum(_compute_rank_probabilities(n))
    return max(1, int(np.searchsorted(below, tail, side="right")))


def _compute_rank_probabilities(n: int) -> NDArray[np.float64]:
    """Return P(W = w) for w = 0 … n(n+1)/2; each rank is counted with probability one half."""
    probability = np.zeros(n * (n + 1) // 2 + 1)
    probability[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.zeros_like(probability)
        shifted[rank:] = probability[:-rank]
        probability = (probability + shifted) / 2
    return probability
