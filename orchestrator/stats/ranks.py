"""Simultaneous intervals of the ranks of several estimates, and groups of them.

Each pair of estimates is compared, and the p values are corrected by Holm. Values of a contest are
compared in pairs, by their common blocks (`contests`), all others by Welch's test. At 95 %, all
orders that the intervals and groups claim are true. An estimate without a standard error, and
without common blocks, may have any rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special
from orchestrator.stats.contests import ContestEntry, PairedMeans, Places, compare_entries
from orchestrator.stats.estimates import MeanEstimate

#: More estimates are not tested: their number of pairs grows with the square.
MOST_TESTED = 500
ALPHA = 0.05

Floats = NDArray[np.float64]
#: Row i, column j: estimate i is surely before estimate j.
SurePairs = NDArray[np.bool_]


class RankInterval(NamedTuple):
    """The best and the worst possible rank, from 1."""

    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The intervals of the ranks, and the groups of each estimate, such as "ab".

    Estimates that share no letter are surely in this order.
    """

    intervals: list[RankInterval]
    groups: list[str]


def compute_rank_intervals(
    means: Sequence[MeanEstimate | None], *, falling: bool
) -> list[RankInterval]:
    """Return the interval of each rank, as `compute_ranking` without contests."""
    return compute_ranking(means, [None] * len(means), falling=falling).intervals


def compute_ranking(
    means: Sequence[MeanEstimate | None],
    entries: Sequence[ContestEntry | None],
    *,
    falling: bool,
    alpha: float = ALPHA,
) -> Ranking:
    """Return the intervals and groups of estimates in the order of the ranking, the best first.

    `falling`: the largest is the best. A mean of None has no standard error; an entry of None is in
    no contest. All claims together are wrong with a probability of at most `alpha` (Holm 1979). Of
    more than MOST_TESTED estimates, no order is claimed.
    """
    sure = find_sure_pairs(means, entries, falling=falling, alpha=alpha)
    before, after = sure.sum(axis=0).tolist(), sure.sum(axis=1).tolist()
    return Ranking(
        intervals=[
            RankInterval(best=1 + ahead, worst=len(means) - behind)
            for ahead, behind in zip(before, after, strict=True)
        ],
        groups=_name_groups(sure),
    )


def find_sure_pairs(
    means: Sequence[MeanEstimate | None],
    entries: Sequence[ContestEntry | None],
    *,
    falling: bool,
    alpha: float = ALPHA,
) -> SurePairs:
    """Return which pairs are surely in the given order; the parameters are those of
    `compute_ranking`."""
    count = len(means)
    sure = np.zeros((count, count), dtype=np.bool_)
    known = [mean or entry for mean, entry in zip(means, entries, strict=True)]
    if sum(each is not None for each in known) > MOST_TESTED:
        return sure
    first, second = np.triu_indices(count, k=1)
    unpaired, paired = _compare_means(means, first, second), compare_entries(entries, first, second)
    mean, error, degrees = (
        np.where(np.isnan(one), other, one) for one, other in zip(paired, unpaired, strict=True)
    )
    tested = np.flatnonzero(~np.isnan(mean))
    p_values = _compute_p_values(np.abs(mean[tested]), error[tested], degrees[tested])
    # The tested mean of a median may be in another order than the medians: then nothing is sure.
    agrees = (mean[tested] > 0) == falling
    proven = tested[_reject_by_holm(p_values, alpha) & agrees]
    sure[first[proven], second[proven]] = True
    return sure


def _compare_means(
    means: Sequence[MeanEstimate | None], first: Places, second: Places
) -> PairedMeans:
    """Return the differences of independent means (Welch 1947, Satterthwaite 1946)."""
    mean, error, degrees = (
        np.array([np.nan if each is None else getattr(each, name) for each in means])
        for name in ("mean", "error", "degrees")
    )
    one, other = error[first] ** 2, error[second] ** 2
    both = one + other
    safe = np.where(both == 0, 1.0, both)
    share = one / safe
    spread = share**2 / degrees[first] + (1 - share) ** 2 / degrees[second]
    together = np.where(both == 0, 1.0, 1 / np.where(both == 0, 1.0, spread))
    return PairedMeans(mean[first] - mean[second], np.sqrt(both), together)


def _compute_p_values(distance: Floats, error: Floats, degrees: Floats) -> Floats:
    """Return two-sided p values; without an error, each distance is real."""
    exact = error == 0
    p_values = 2 * special.stdtr(degrees, -distance / np.where(exact, 1.0, error))
    return np.asarray(np.where(exact, np.where(distance > 0, 0.0, 1.0), p_values))


def _reject_by_holm(p_values: Floats, alpha: float) -> NDArray[np.bool_]:
    order = np.argsort(p_values, kind="stable")
    limits = alpha / np.arange(p_values.size, 0, -1)
    kept = p_values[order] > limits
    rejected = int(kept.argmax()) if kept.any() else p_values.size
    result = np.zeros(p_values.size, dtype=np.bool_)
    result[order[:rejected]] = True
    return result


def _name_groups(sure: SurePairs) -> list[str]:
    """Return the letters of each row. A group reaches from a row to the last that may equal it.

    So rows without a common letter are proven to differ. Groups inside another one are left out.
    """
    count = len(sure)
    groups: list[tuple[int, int]] = []
    for begin in range(count):
        end = int(np.flatnonzero(~sure[begin])[-1])
        if not groups or end > groups[-1][1]:
            groups.append((begin, end))
    names: list[list[str]] = [[] for _ in range(count)]
    for number, (begin, end) in enumerate(groups):
        for row in range(begin, end + 1):
            names[row].append(_name_group(number))
    return [_join_names(each) for each in names]


def _name_group(number: int) -> str:
    """Return a to z, then aa, ab and so on."""
    rest, letter = divmod(number, len(ascii_lowercase))
    return (_name_group(rest - 1) if rest else "") + ascii_lowercase[letter]


def _join_names(names: Sequence[str]) -> str:
    """Return "a", "ab", or "a–d" for more than two; the groups of a row follow each other."""
    separator = "" if len(names[-1]) == 1 else ", "
    return f"{names[0]}–{names[-1]}" if len(names) > 2 else separator.join(names)
