"""The change of a metric with the values of saturated trials, whose blocks do not count.

A trial is saturated by its own load, so the blocks that count have the shorter latencies. Near
saturation, the slower side loses more blocks, and the change of the others is too small. So the
change over all blocks is estimated as well. A latency of a saturated trial is a lower bound: its
queue was still growing, and its longest requests were never answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from orchestrator.stats.comparison import Better, Comparison
from orchestrator.stats.many import ComparisonInput, compare_many


class SaturatedBlock(NamedTuple):
    """The values of one metric in a block with a saturated trial; `saturated`: of which sides."""

    baseline: float
    contender: float
    order: int
    saturated: tuple[bool, bool]


class Bound(StrEnum):
    """What the estimate says about the change, as the values of saturated trials are bounds."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    #: Trials of both sides are saturated.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturatedEstimate:
    """The change over all blocks, with its 95 % interval; `blocks` of them have a saturated trial.

    It is for information, and gives no verdict.
    """

    change: float
    low: float
    high: float
    blocks: int
    bound: Bound


def estimate_with_saturated(
    cells: Sequence[tuple[ComparisonInput, Sequence[SaturatedBlock]]],
) -> list[SaturatedEstimate | None]:
    """Return the estimate of each metric, from its blocks that count and the saturated ones.

    None without a saturated block, or without an interval.
    """
    results = compare_many([_add_blocks(counted, blocks) for counted, blocks in cells])
    return [
        _build_estimate(counted.better, blocks, result)
        for (counted, blocks), result in zip(cells, results, strict=True)
    ]


def _add_blocks(counted: ComparisonInput, blocks: Sequence[SaturatedBlock]) -> ComparisonInput:
    orders = [*counted.orders, *(block.order for block in blocks)] if counted.orders else ()
    return replace(
        counted,
        baseline=[*counted.baseline, *(block.baseline for block in blocks)],
        contender=[*counted.contender, *(block.contender for block in blocks)],
        orders=orders,
    )


def _build_estimate(
    better: Better, blocks: Sequence[SaturatedBlock], result: Comparison
) -> SaturatedEstimate | None:
    if not blocks or result.change is None or result.low is None or result.high is None:
        return None
    return SaturatedEstimate(
        change=result.change,
        low=result.low,
        high=result.high,
        blocks=len(blocks),
        bound=_find_bound(better, blocks),
    )


def _find_bound(better: Better, blocks: Sequence[SaturatedBlock]) -> Bound:
    """Return the bound: the true values of saturated trials are worse than the measured ones."""
    before, after = (any(block.saturated[side] for block in blocks) for side in (0, 1))
    if before and after:
        return Bound.UNKNOWN
    return Bound.AT_LEAST if after == (better == "lower") else Bound.AT_MOST
