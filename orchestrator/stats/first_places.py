"""The first places of a contest at an interim analysis: whether their order is decided.

The analyses of a contest share its error rate, as those of a case do (`interim`). In each, all
pairs of values are corrected by Holm. So a contest names a wrong order with a probability below
0.05.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from orchestrator.stats.contests import ContestEntry, compare_entries
from orchestrator.stats.interim import INTERIM_ALPHA
from orchestrator.stats.ranks import find_sure_pairs

#: The default number of places that are ordered, and the most.
DEFAULT_PLACES, MOST_PLACES = 3, 20

Case = TypeVar("Case", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesDecision(Generic[Case]):
    """`order`: the open cases, the best first. `out`: those surely behind the first places.

    `decided`: the order of the first places is proven.
    """

    order: tuple[Case, ...]
    out: frozenset[Case]
    decided: bool


def decide_places(
    entries: Mapping[Case, ContestEntry],
    open_cases: Collection[Case],
    *,
    places: int,
    falling: bool,
) -> PlacesDecision[Case]:
    """Decide the first `places` among the open cases; the others are out since an earlier analysis.

    `falling`: the largest value is the best. All entries belong to the family of tests, so a case
    that is out makes no other claim easier.
    """
    order = _rank_cases(entries, falling=falling)
    ranked = [case for case in order if case in open_cases]
    rows = [*ranked, *(case for case in order if case not in open_cases)]
    count = len(ranked)
    sure = find_sure_pairs(
        [None] * len(rows),
        [entries[case] for case in rows],
        falling=falling,
        alpha=INTERIM_ALPHA,
    )[:count, :count]
    before = sure.sum(axis=0)
    return PlacesDecision(
        order=tuple(ranked),
        out=frozenset(case for at, case in enumerate(ranked) if before[at] >= places),
        decided=all(sure[at, at + 1 :].all() for at in range(min(places, count - 1))),
    )


def _rank_cases(entries: Mapping[Case, ContestEntry], *, falling: bool) -> Sequence[Case]:
    """Return the cases by their mean difference from the others, those without a pair last."""
    cases = list(entries)
    first, second = np.triu_indices(len(cases), k=1)
    means = compare_entries(list(entries.values()), first, second).mean
    known = ~np.isnan(means)
    sums, counts = np.zeros(len(cases)), np.zeros(len(cases))
    for rows, sign in ((first, 1), (second, -1)):
        np.add.at(sums, rows[known], sign * means[known])
        np.add.at(counts, rows[known], 1)
    scores = (sums if falling else -sums) / np.maximum(counts, 1)
    scores[counts == 0] = -np.inf
    return [cases[at] for at in np.argsort(-scores, kind="stable").tolist()]
