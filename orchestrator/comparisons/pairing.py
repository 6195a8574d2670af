"""Pair the points of both sides: one PairedCase for each case and host that both measured.

A block is one round of one job: its trials were measured one after the other. If the sides share
blocks, their values are paired by block. If they share none, a case holds the values of both sides
without an order. Points are comparable if epoch of the host and configuration are equal; others are
used only if the sides have no comparable points.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.comparisons.points import (
    CaseOnHost,
    ComparabilityKey,
    MetricValues,
    PointGroup,
    PointIndex,
)
from orchestrator.measurements.comparability import hash_block
from orchestrator.runs.models import Job, Run
from orchestrator.stats.order_effect import find_order


@dataclass(slots=True, kw_only=True)
class PairedCase:
    """One case on one host, or on the hosts of one profile: metric key → values of both sides.

    `paired`: value i of both sides is of the same block. `blocks` are those of both sides. If
    paired, both measured at least one metric in each of them; 0 is not among them.
    `orders` and `builds`, if paired: metric key → the order of each block (`stats.order_effect`),
    and the builds of both of its trials (`stats.build_variance`).
    `value_blocks`: metric key → the block of each value of both sides.
    `excluded_trials` counts trials of both sides that are of another epoch or configuration.
    """

    baseline: tuple[PointGroup, ...]
    contender: tuple[PointGroup, ...]
    paired: bool
    metrics: Mapping[str, tuple[list[float], list[float]]]
    blocks: tuple[frozenset[int], frozenset[int]]
    orders: Mapping[str, Sequence[int]] = field(default_factory=dict)
    builds: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    value_blocks: Mapping[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    excluded_trials: int = 0

    @property
    def count(self) -> int:
        """The number of compared blocks; if not paired, of trials of the smaller side."""
        return max((min(map(len, values)) for values in self.metrics.values()), default=0)

    @property
    def invalid_trials(self) -> int:
        """The number of invalid trials of both sides."""
        return sum(group.invalid for group in (*self.baseline, *self.contender))

    @property
    def comparable(self) -> bool:
        """Whether both sides are the same case on the same host in one epoch and configuration."""
        before = {(group.place, group.comparability) for group in self.baseline}
        return before == {(group.place, group.comparability) for group in self.contender}


#: The runs of older jobs are not looked up.
MOST_JOBS = 2000
#: Properties of points of two sides that must be equal to be paired.
PairingKey = Callable[[CaseOnHost], object]


def list_possible_blocks(run: Run) -> frozenset[int]:
    """All blocks that a run can have."""
    jobs = run.jobs.values_list("pk", flat=True)
    return frozenset(hash_block(job, number) for job in jobs for number in range(1, MAX_ROUNDS + 1))


def load_block_runs(benchmark: Benchmark, commits: Collection[Commit]) -> dict[int, UUID]:
    """Map the blocks of the newest jobs that measured one of these commits to their runs."""
    jobs = Job.objects.filter(
        run__definition__benchmark=benchmark, run__variants__commit__in=commits
    ).distinct()
    rows = jobs.order_by("-pk").values_list("pk", "run_id", "run__rounds")[:MOST_JOBS]
    return {
        hash_block(job, number): run for job, run, rounds in rows for number in range(1, rounds + 1)
    }


def pair_cases(
    baseline: PointIndex,
    contender: PointIndex,
    *,
    keys: tuple[PairingKey, PairingKey] | None = None,
    only: Collection[int] | None = None,
    one_commit: bool = False,
) -> list[PairedCase]:
    """The cases that both sides have, in the order of the baseline's.

    `keys` are the pairing keys of both sides; the default is case and host. `only`: other blocks do
    not count. With `one_commit` on both sides, a case is not paired with itself.
    """
    before = _group_by_key(baseline, keys and keys[0])
    after = _group_by_key(contender, keys and keys[1])
    cases = (
        _pair_case(places, after[key], baseline, contender, only)
        for key, places in before.items()
        if key in after
    )
    return [case for case in cases if not (one_commit and case.comparable)]


def _group_by_key(points: PointIndex, key: PairingKey | None) -> dict[object, list[CaseOnHost]]:
    grouped: dict[object, list[CaseOnHost]] = {}
    for place in points:
        grouped.setdefault(key(place) if key else place, []).append(place)
    return grouped


def _pair_case(
    before: list[CaseOnHost],
    after: list[CaseOnHost],
    baseline: PointIndex,
    contender: PointIndex,
    only: Collection[int] | None,
) -> PairedCase:
    if len(before) == len(after) == 1:
        first, second, excluded = _choose_groups(baseline[before[0]], contender[after[0]])
        return _pair_groups((first,), (second,), excluded, only)
    return _pair_groups(
        tuple(_find_newest(baseline[place].values()) for place in before),
        tuple(_find_newest(contender[place].values()) for place in after),
        0,
        only,
    )


def _choose_groups(
    before: Mapping[ComparabilityKey, PointGroup], after: Mapping[ComparabilityKey, PointGroup]
) -> tuple[PointGroup, PointGroup, int]:
    """The groups to compare, and the number of trials of comparable groups that are not used.

    Of several comparable pairs the newest that shares blocks is used, else the newest.
    """
    common = before.keys() & after.keys()
    pairs = [(before[key], after[key]) for key in common]
    if not common:
        pairs = [(first, second) for first in before.values() for second in after.values()]
    if len(pairs) == 1:
        return *pairs[0], 0
    best = max(pairs, key=_rank_pair)
    unused = [group for pair in pairs if common and pair is not best for group in pair]
    return *best, sum(map(_count_trials, unused))


def _rank_pair(pair: tuple[PointGroup, PointGroup]) -> tuple[bool, float, float]:
    first, second = pair
    return (
        bool(list_all_blocks(first) & list_all_blocks(second)),
        min(first.at, second.at),
        first.at,
    )


def _find_newest(groups: Iterable[PointGroup]) -> PointGroup:
    return max(groups, key=lambda group: group.at)


def list_all_blocks(*groups: PointGroup) -> frozenset[int]:
    """Return the blocks in which at least one metric of these groups was measured."""
    blocks = {
        block for group in groups for values in group.metrics.values() for block in values.blocks
    }
    return frozenset(blocks - {0})


def _count_trials(group: PointGroup) -> int:
    return max((len(values.values) for values in group.metrics.values()), default=0)


def _pair_groups(
    before: tuple[PointGroup, ...],
    after: tuple[PointGroup, ...],
    excluded_trials: int,
    only: Collection[int] | None,
) -> PairedCase:
    first, second = _pool_metrics(before), _pool_metrics(after)
    common = [metric for metric in first if metric in second]
    metrics: dict[str, tuple[list[float], list[float]]] = {}
    orders: dict[str, list[int]] = {}
    builds: dict[str, list[tuple[int, int]]] = {}
    value_blocks: dict[str, tuple[list[int], list[int]]] = {}
    shared: set[int] = set()
    for metric in common:
        pairs = _pair_values(first[metric], second[metric], only)
        if pairs.blocks:
            metrics[metric] = pairs.baseline, pairs.contender
            orders[metric] = pairs.orders
            builds[metric] = pairs.builds
            value_blocks[metric] = pairs.blocks, pairs.blocks
            shared.update(pairs.blocks)
    paired = bool(metrics) or only is not None
    both = frozenset(shared), frozenset(shared)
    if not paired:
        metrics = {metric: (first[metric].values, second[metric].values) for metric in common}
        value_blocks = {metric: (first[metric].blocks, second[metric].blocks) for metric in common}
        both = list_all_blocks(*before), list_all_blocks(*after)
    if only is not None:
        # These values are of all runs; a page that is cached must not keep them.
        before, after = _without_values(before), _without_values(after)
    return PairedCase(
        baseline=before,
        contender=after,
        paired=paired,
        metrics=metrics,
        blocks=both,
        orders=orders,
        builds=builds,
        value_blocks=value_blocks,
        excluded_trials=excluded_trials,
    )


def _without_values(side: tuple[PointGroup, ...]) -> tuple[PointGroup, ...]:
    return tuple(replace(group, metrics={}) for group in side)


def _pool_metrics(groups: tuple[PointGroup, ...]) -> Mapping[str, MetricValues]:
    if len(groups) == 1:
        return groups[0].metrics
    pooled: dict[str, list[MetricValues]] = {}
    for group in groups:
        for metric, values in group.metrics.items():
            pooled.setdefault(metric, []).append(values)
    return {metric: _concatenate(values) for metric, values in pooled.items()}


def _concatenate(parts: list[MetricValues]) -> MetricValues:
    return MetricValues(
        [value for part in parts for value in part.values],
        [block for part in parts for block in part.blocks],
        [place for part in parts for place in part.places],
        [build for part in parts for build in part.builds],
    )


class _Pairs(NamedTuple):
    """The values of the blocks that both sides have, these blocks, their orders and builds."""

    baseline: list[float]
    contender: list[float]
    blocks: list[int]
    orders: list[int]
    builds: list[tuple[int, int]]


def _pair_values(before: MetricValues, after: MetricValues, only: Collection[int] | None) -> _Pairs:
    if only is None and before.blocks == after.blocks and 0 not in before.blocks:
        orders = list(map(find_order, before.places, after.places))
        builds = list(zip(before.builds, after.builds, strict=True))
        return _Pairs(before.values, after.values, before.blocks, orders, builds)
    contender = {
        block: (value, place, build) for block, value, place, build in _iterate_values(after)
    }
    pairs = _Pairs([], [], [], [], [])
    for block, value, place, build in _iterate_values(before):
        if block and block in contender and (only is None or block in only):
            other, other_place, other_build = contender[block]
            pairs.baseline.append(value)
            pairs.contender.append(other)
            pairs.blocks.append(block)
            pairs.orders.append(find_order(place, other_place))
            pairs.builds.append((build, other_build))
    return pairs


def _iterate_values(values: MetricValues) -> Iterator[tuple[int, float, int, int]]:
    """Yield the block, value, place and build of each trial."""
    return zip(values.blocks, values.values, values.places, values.builds, strict=True)
