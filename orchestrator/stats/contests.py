"""Paired comparisons between the values of a contest, which were measured in common blocks.

Two of them are compared as two commits are: by the differences of logs in their common blocks, with
the effect of the order (`order_effect`) and the variance between builds (`build_variance`).
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.build_variance import add_build_variance
from orchestrator.stats.estimates import Estimate, MeanEstimate, bound_change, bound_difference
from orchestrator.stats.order_effect import compute_block_means
from orchestrator.stats.paired import FEWEST_BLOCKS

#: The most values that are compared in one step, which bounds the memory.
_STEP = 1_000_000

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class ContestTrial(NamedTuple):
    """The value of a trial, its place in the order of its job, and its build; 0: not known."""

    value: float
    place: int
    build: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestEntry:
    """One value of the axis of a contest, by the trials of its blocks; `key` is the contest.

    `interim`: a run ended by interim analyses of its contest, so its data were analysed before.
    """

    key: Hashable
    trials: Mapping[int, ContestTrial]
    interim: bool = False


class PairedMeans(NamedTuple):
    """Mean differences of logs with their standard errors and degrees of freedom.

    A pair of fewer than FEWEST_BLOCKS common blocks is NaN.
    """

    mean: Floats
    error: Floats
    degrees: Floats


class _Columns(NamedTuple):
    """A row for each entry, a column for each block. `logs`: NaN if not measured."""

    logs: Floats
    places: Places
    builds: Places

    def select(self, rows: Places, blocks: Places) -> "_Columns":
        """Return the columns `blocks[i]` of each row `rows[i]`."""
        at = rows[:, None], blocks
        return _Columns(self.logs[at], self.places[at], self.builds[at])


def change_in_contest(
    entry: ContestEntry | None, base: ContestEntry | None, change: float, *, are_means: bool
) -> Estimate | None:
    """Return entry / base − 1, paired by block; None with fewer than FEWEST_BLOCKS common blocks.

    `are_means`: the change is that of the means of the common blocks, with its interval. Otherwise
    it is `change`, without one. `n` counts the blocks.
    """
    compared = _compare_two(entry, base, (1.0, 1.0))
    return compared and bound_change(change, *compared, are_means=are_means)


def difference_in_contest(
    entry: ContestEntry | None,
    base: ContestEntry | None,
    values: tuple[float, float],
    *,
    are_means: bool,
) -> Estimate | None:
    """Return the difference of `values`, those of entry and base, as `change_in_contest` does.

    The errors of the geometric means are those of their logs times the means.
    """
    compared = _compare_two(entry, base, values)
    if compared is None:
        return None
    tested, n = compared
    difference = values[0] - values[1]
    centred = MeanEstimate(mean=difference, error=tested.error, degrees=tested.degrees)
    return bound_difference(centred, n, are_means=are_means)


def compare_entries(
    entries: Sequence[ContestEntry | None], first: Places, second: Places
) -> PairedMeans:
    """Compare pairs of entries, given as indices: the mean log of the first minus the second.

    Entries of different contests are not compared.
    """
    keys = {each.key: place for place, each in enumerate(entries) if each is not None}
    contest = np.array([-1 if each is None else keys[each.key] for each in entries], dtype=np.int64)
    same = np.flatnonzero((contest[first] == contest[second]) & (contest[first] >= 0))
    result = PairedMeans(*(np.full(first.size, np.nan) for _ in range(3)))
    columns = _build_columns([each.trials if each else None for each in entries])
    step = max(1, _STEP // max(1, columns.logs.shape[1]))
    for begin in range(0, same.size, step):
        pairs = same[begin : begin + step]
        for places, means in _compare_pairs(columns, first[pairs], second[pairs]):
            for whole, part in zip(result, means, strict=True):
                whole[pairs[places]] = part
    return result


def _compare_two(
    entry: ContestEntry | None, base: ContestEntry | None, factors: tuple[float, float]
) -> tuple[MeanEstimate, int] | None:
    """Return the mean difference of the logs times their factors, and the number of blocks."""
    if entry is None or base is None or entry.key != base.key:
        return None
    columns = _build_columns([entry.trials, base.trials])
    scaled = columns._replace(logs=columns.logs * np.array(factors)[:, None])
    for _, (mean, error, degrees) in _compare_pairs(scaled, np.array([0]), np.array([1])):
        tested = MeanEstimate(mean=float(mean[0]), error=float(error[0]), degrees=float(degrees[0]))
        return tested, int(np.isfinite(scaled.logs).all(axis=0).sum())
    return None


def _build_columns(entries: Sequence[Mapping[int, ContestTrial] | None]) -> _Columns:
    blocks = {block: 0 for trials in entries if trials for block in trials}
    at = {block: place for place, block in enumerate(blocks)}
    logs = np.full((len(entries), len(at)), np.nan)
    places, builds = (np.zeros(logs.shape, dtype=np.int64) for _ in range(2))
    for row, trials in enumerate(entries):
        # A value of zero or less has no ratio, so its entry is compared with none.
        if not trials or min(trial.value for trial in trials.values()) <= 0:
            continue
        columns = [at[block] for block in trials]
        values, row_places, row_builds = zip(*trials.values(), strict=True)
        logs[row, columns] = np.log(values)
        places[row, columns], builds[row, columns] = row_places, row_builds
    return _Columns(logs, places, builds)


def _compare_pairs(
    columns: _Columns, first: Places, second: Places
) -> Iterator[tuple[Places, PairedMeans]]:
    """Yield the places of pairs with equal numbers of common blocks, and their means."""
    known = np.isfinite(columns.logs)
    common = known[first] & known[second]
    counts = common.sum(axis=1)
    for n in np.unique(counts[counts >= FEWEST_BLOCKS]).tolist():
        pairs = np.flatnonzero(counts == n)
        blocks = np.nonzero(common[pairs])[1].reshape(-1, n)
        one, other = (columns.select(rows[pairs], blocks) for rows in (first, second))
        are_known = (one.places > 0) & (other.places > 0)
        orders = np.where(are_known, np.sign(one.places - other.places), 0)
        means = compute_block_means(one.logs - other.logs, orders)
        builds = np.stack([other.builds, one.builds], axis=2)
        means = add_build_variance(means, builds, [None] * len(pairs))
        yield pairs, PairedMeans(means.mean, means.error, means.degrees)
