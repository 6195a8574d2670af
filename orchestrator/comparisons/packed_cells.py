"""The usual comparison read as columns: two commits, every cell of both in as many shared blocks.

Hundreds of cells arrive as one row of packed arrays and are never made into objects of their own.
Whatever is not usual (a cell of one side only, one with fewer blocks than another, another
configuration, a zero) has no such short cut: then there is no answer here, and `cells` reads it in
the general way.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.points import Likeness, Measured, Place
from orchestrator.loadtools.metrics import metric_for
from orchestrator.stats.many import Brief, compare_columns

_PACKED = """
WITH series AS (
    SELECT series.id, series.case_id, series.host_id, metric.key
    FROM results_series series
    JOIN results_metric metric ON metric.id = series.metric_id
    WHERE series.benchmark_id = %(benchmark)s AND metric.key = ANY(%(metrics)s)
), before AS (
    SELECT point.series_id, point.epoch, point.configuration, point."values", point.blocks
    FROM results_point point JOIN series ON series.id = point.series_id
    WHERE point.commit_id = %(baseline)s
), after AS (
    SELECT point.series_id, point.epoch, point.configuration, point."values", point.blocks
    FROM results_point point JOIN series ON series.id = point.series_id
    WHERE point.commit_id = %(contender)s
)
SELECT count(*) = count(DISTINCT series.id)
           AND count(*) = count(before.blocks) AND count(*) = count(after.blocks)
           AND min(cardinality(before.blocks)) = max(cardinality(before.blocks))
           AND min(cardinality(after.blocks)) = max(cardinality(after.blocks)),
       min(cardinality(before.blocks)), min(cardinality(after.blocks)),
       array_agg(series.case_id), array_agg(series.host_id::text), array_agg(series.key),
       string_agg(array_send(before."values"), ''), string_agg(array_send(after."values"), ''),
       string_agg(array_send(before.blocks), ''), string_agg(array_send(after.blocks), '')
FROM before
FULL JOIN after USING (series_id, epoch, configuration)
JOIN series ON series.id = series_id
"""
#: Numbers before the items of an array that PostgreSQL sends: dimensions, flags, type, size, start.
_HEAD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCells:
    """Cells without their values, and place of a cell as text → metric → comparison."""

    cells: list[Cell]
    compared: dict[str, dict[str, Brief]]


def packed_cells(
    benchmark: Benchmark, baseline: Commit, contender: Commit, metrics: Collection[str]
) -> PackedCells | None:
    """All cells of these metrics, compared; None where they are not all of the usual kind."""
    given: dict[str, int | list[str]] = {
        "benchmark": benchmark.pk,
        "metrics": list(metrics),
        "baseline": baseline.pk,
        "contender": contender.pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PACKED, given)
        usual, trials_before, trials_after, *columns = cursor.fetchone()
    if not usual or not trials_before or not trials_after:
        return None
    cases, hosts, keys, *packed = columns
    sides = [
        _Side(
            values=_items(values, trials, ">f8").astype(np.float64),
            blocks=_items(blocks, trials, ">i8"),
        )
        for values, blocks, trials in zip(
            packed[:2], packed[2:], (trials_before, trials_after), strict=True
        )
    ]
    paired = _paired(*sides)
    if paired is None or not all((side > 0).all() for side in paired):
        return None
    return _compared(cases, hosts, keys, *paired)


@dataclass(frozen=True, slots=True)
class _Side:
    """Cells × trials: what was measured of one commit, and in which blocks."""

    values: NDArray[np.float64]
    blocks: NDArray[np.int64]


def _items(packed: bytes, trials: int, kind: str) -> NDArray[Any]:
    """Cells × trials, of arrays as `array_send` writes them, one after the other."""
    item = np.dtype([("size", ">i4"), ("value", kind)])
    whole = np.dtype([("head", ">i4", (_HEAD,)), ("items", item, (trials,))])
    return np.frombuffer(packed, dtype=whole)["items"]["value"]


def _paired(before: _Side, after: _Side) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Cells × blocks of both, those of one block beside each other.

    None unless all cells share equally many, two at least.
    """
    same = before.blocks[:, :, None] == after.blocks[:, None, :]
    same &= (before.blocks != 0)[:, :, None]
    shared = same.any(axis=2)
    counts = shared.sum(axis=1)
    blocks = int(counts[0])
    twice = (same.sum(axis=1) > 1).any() or (same.sum(axis=2) > 1).any()
    if blocks < 2 or (counts != blocks).any() or twice:
        return None
    partner = same.argmax(axis=2)[shared].reshape(-1, blocks)
    return before.values[shared].reshape(-1, blocks), np.take_along_axis(
        after.values, partner, axis=1
    )


def _compared(
    cases: list[int],
    hosts: list[str],
    keys: list[str],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
) -> PackedCells | None:
    infos: dict[str, Any] = {key: metric_for(key) for key in set(keys)}
    if any(info is None or info.informational for info in infos.values()):
        return None
    kinds = {key: (info.better, info.margin) for key, info in infos.items()}
    briefs = compare_columns(before, after, [kinds[key] for key in keys])
    grouped: dict[tuple[str, int], dict[str, Brief]] = {}
    for case, host, key, brief in zip(cases, hosts, keys, briefs, strict=True):
        grouped.setdefault((host, case), {})[key] = brief
    return PackedCells(
        cells=[_cell(Place(*place)) for place in grouped],
        compared={str(number): found for number, found in enumerate(grouped.values())},
    )


def _cell(place: Place) -> Cell:
    side = (Measured(place, Likeness(0, 0), 0.0),)
    return Cell(baseline=side, contender=side, paired=True, metrics={}, blocks=(frozenset(),) * 2)
