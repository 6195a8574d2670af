"""The cells of a comparison: what both sides measured, value beside value of the same block.

A block is one round of one job: what was measured in it was measured next to each other in time.
Where the sides share blocks, a cell is paired by them; where they share none, it holds the values
of both as they are. Only points of the same epoch of a host and of the same configuration are put
beside each other, unless both sides have none in common.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.comparisons.points import Found, Likeness, Measured, Place, Values
from orchestrator.measurements.comparability import block_of
from orchestrator.runs.models import Run


@dataclass(slots=True, kw_only=True)
class Cell:
    """One case on one host, or on one kind of hosts: metric key → values of both sides.

    `paired`: value i of both sides is of the same block. `blocks` are those of both sides: if
    paired, the blocks in which both measured one metric at least; 0 is not among them. `left_out`
    counts trials of both sides that are of another epoch or configuration.
    """

    baseline: tuple[Measured, ...]
    contender: tuple[Measured, ...]
    paired: bool
    metrics: Mapping[str, tuple[list[float], list[float]]]
    blocks: tuple[frozenset[int], frozenset[int]]
    left_out: int = 0

    @property
    def count(self) -> int:
        """Blocks that are compared; trials of the smaller side where they share none."""
        return max((min(map(len, values)) for values in self.metrics.values()), default=0)

    @property
    def alike(self) -> bool:
        """Whether both sides are the same case in the same epoch of one host, in one
        configuration."""
        before = {(each.place, each.likeness) for each in self.baseline}
        return before == {(each.place, each.likeness) for each in self.contender}


#: What the same cell of two sides has in common.
Key = Callable[[Place], object]


def blocks_of_run(run: Run) -> frozenset[int]:
    """All blocks that a run can have."""
    jobs = run.jobs.values_list("pk", flat=True)
    return frozenset(block_of(job, number) for job in jobs for number in range(1, MAX_ROUNDS + 1))


def cells_of(
    baseline: Found,
    contender: Found,
    *,
    keys: tuple[Key, Key] | None = None,
    only: Collection[int] | None = None,
    one_commit: bool = False,
) -> list[Cell]:
    """The cells that both sides have, in the order of the baseline's.

    `keys` give what a place is matched by, for each side; by itself without. `only`: nothing
    counts but these blocks. With `one_commit` on both sides, points against themselves are no cell.
    """
    before, after = _by_key(baseline, keys and keys[0]), _by_key(contender, keys and keys[1])
    cells = (
        _cell(places, after[key], baseline, contender, only)
        for key, places in before.items()
        if key in after
    )
    return [cell for cell in cells if not (one_commit and cell.alike)]


def _by_key(found: Found, key: Key | None) -> dict[object, list[Place]]:
    grouped: dict[object, list[Place]] = {}
    for place in found:
        grouped.setdefault(key(place) if key else place, []).append(place)
    return grouped


def _cell(
    before: list[Place],
    after: list[Place],
    baseline: Found,
    contender: Found,
    only: Collection[int] | None,
) -> Cell:
    if len(before) == len(after) == 1:
        first, second, left_out = _chosen(baseline[before[0]], contender[after[0]])
        return _paired((first,), (second,), left_out, only)
    return _paired(
        tuple(_newest(baseline[place].values()) for place in before),
        tuple(_newest(contender[place].values()) for place in after),
        0,
        only,
    )


def _chosen(
    before: Mapping[Likeness, Measured], after: Mapping[Likeness, Measured]
) -> tuple[Measured, Measured, int]:
    """What is put beside each other, and how many trials of likenesses that both have are not.

    Of those that both have the newest that shares blocks counts, else the newest.
    """
    common = before.keys() & after.keys()
    pairs = [(before[each], after[each]) for each in common]
    if not common:
        pairs = [(first, second) for first in before.values() for second in after.values()]
    if len(pairs) == 1:
        return *pairs[0], 0
    best = max(pairs, key=_preference)
    rest = [each for pair in pairs if common and pair is not best for each in pair]
    return *best, sum(map(_trials, rest))


def _preference(pair: tuple[Measured, Measured]) -> tuple[bool, float, float]:
    first, second = pair
    return bool(_blocks(first) & _blocks(second)), min(first.at, second.at), first.at


def _newest(measured: Iterable[Measured]) -> Measured:
    return max(measured, key=lambda each: each.at)


def _blocks(*measured: Measured) -> frozenset[int]:
    found = {
        block for each in measured for values in each.metrics.values() for block in values.blocks
    }
    return frozenset(found - {0})


def _trials(measured: Measured) -> int:
    return max((len(values.values) for values in measured.metrics.values()), default=0)


def _paired(
    before: tuple[Measured, ...],
    after: tuple[Measured, ...],
    left_out: int,
    only: Collection[int] | None,
) -> Cell:
    first, second = _pooled(before), _pooled(after)
    common = [metric for metric in first if metric in second]
    metrics: dict[str, tuple[list[float], list[float]]] = {}
    shared: set[int] = set()
    for metric in common:
        values, others, blocks = _pairs(first[metric], second[metric], only)
        if blocks:
            metrics[metric] = values, others
            shared.update(blocks)
    paired = bool(metrics) or only is not None
    both = frozenset(shared), frozenset(shared)
    if not paired:
        metrics = {each: (first[each].values, second[each].values) for each in common}
        both = _blocks(*before), _blocks(*after)
    if only is not None:
        # They are of all runs, `blocks` says which count, and a page is kept for a while.
        before, after = _without_values(before), _without_values(after)
    return Cell(
        baseline=before,
        contender=after,
        paired=paired,
        metrics=metrics,
        blocks=both,
        left_out=left_out,
    )


def _without_values(side: tuple[Measured, ...]) -> tuple[Measured, ...]:
    return tuple(replace(each, metrics={}) for each in side)


def _pooled(measured: tuple[Measured, ...]) -> Mapping[str, Values]:
    if len(measured) == 1:
        return measured[0].metrics
    pooled: dict[str, list[Values]] = {}
    for each in measured:
        for metric, values in each.metrics.items():
            pooled.setdefault(metric, []).append(values)
    return {metric: _joined(values) for metric, values in pooled.items()}


def _joined(several: list[Values]) -> Values:
    return Values(
        [value for each in several for value in each.values],
        [block for each in several for block in each.blocks],
    )


def _pairs(
    before: Values, after: Values, only: Collection[int] | None
) -> tuple[list[float], list[float], list[int]]:
    """The values of the blocks that both have, and these blocks."""
    if only is None and before.blocks == after.blocks and 0 not in before.blocks:
        return before.values, after.values, before.blocks
    known = dict(zip(after.blocks, after.values, strict=True))
    first, second, blocks = [], [], []
    for value, block in zip(before.values, before.blocks, strict=True):
        if block and block in known and (only is None or block in only):
            first.append(value)
            second.append(known[block])
            blocks.append(block)
    return first, second, blocks
