"""The errors of estimates near saturation, where slow trials are saturated and do not count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.comparison import as_change
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.saturated_blocks import SaturatedBlock, estimate_with_saturated
from perf.detection.false_claims import draw_orders

Floats = NDArray[np.float64]

CHANGES = (0.0, 0.05, 0.1, 0.2)
BLOCKS = 20
#: The standard deviation of ln(p99) of a trial near saturation.
DEVIATION = 0.25
#: A trial is saturated if its ln(p99) is this number of deviations above the mean of the baseline.
LIMIT = 1.8
_MARGIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationErrors:
    """Comparisons with a true `change` of p99, of which the share `lost` of blocks does not count.

    Geometric means of the estimates: `counted` by the other blocks, and with the saturated ones.
    For `included` these have their true values, and for `cut` the value at which a trial becomes
    saturated.
    """

    change: float
    lost: float
    counted: float
    included: float
    cut: float


def measure_saturation(
    number: int, seed: int, changes: Sequence[float] = CHANGES
) -> list[SaturationErrors]:
    """Return the estimates of `number` comparisons for each change."""
    rng = np.random.default_rng([seed, 70])
    return [_measure_change(rng, number, change) for change in changes]


def _measure_change(rng: np.random.Generator, number: int, change: float) -> SaturationErrors:
    logs = rng.normal(0, DEVIATION, (number, BLOCKS, 2))
    logs[:, :, 1] += math.log1p(change)
    saturated = logs > LIMIT * DEVIATION
    orders = draw_orders(rng, number, BLOCKS)
    counted = [_count_blocks(*each) for each in zip(logs, saturated, orders, strict=True)]
    return SaturationErrors(
        change=change,
        lost=float(saturated.any(axis=2).mean()),
        counted=_average(each.change for each in compare_many(counted)),
        included=_include(counted, logs, saturated, orders),
        cut=_include(counted, np.minimum(logs, LIMIT * DEVIATION), saturated, orders),
    )


def _count_blocks(
    logs: Floats, saturated: NDArray[np.bool_], orders: NDArray[np.int64]
) -> ComparisonInput:
    """Return the blocks without a saturated trial."""
    kept = ~saturated.any(axis=1)
    before, after = np.exp(logs[kept]).T.tolist()
    return ComparisonInput(
        baseline=before,
        contender=after,
        better="lower",
        margin=_MARGIN,
        orders=orders[kept].tolist(),
    )


def _include(
    counted: Sequence[ComparisonInput],
    logs: Floats,
    saturated: NDArray[np.bool_],
    orders: NDArray[np.int64],
) -> float:
    """Return the mean estimate with the saturated blocks."""
    blocks = [_list_saturated(*each) for each in zip(logs, saturated, orders, strict=True)]
    estimates = estimate_with_saturated(list(zip(counted, blocks, strict=True)))
    return _average(each.change for each in estimates if each is not None)


def _list_saturated(
    logs: Floats, saturated: NDArray[np.bool_], orders: NDArray[np.int64]
) -> list[SaturatedBlock]:
    return [
        SaturatedBlock(math.exp(before), math.exp(after), order, (flags[0], flags[1]))
        for (before, after), flags, order in zip(
            logs.tolist(), saturated.tolist(), orders.tolist(), strict=True
        )
        if any(flags)
    ]


def _average(changes: Iterable[float | None]) -> float:
    logs = [math.log1p(change) for change in changes if change is not None]
    return as_change(sum(logs) / max(1, len(logs)))
