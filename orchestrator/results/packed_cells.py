"""The usual comparison read as columns: two commits, every cell of both in the same blocks.

Hundreds of cells arrive as one row of packed arrays and are never made into objects of their own.
Whatever is not usual (a cell of one side only, other blocks, another shape, a zero) has no such
short cut: then there is no answer here, and `cells` reads it in the general way.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.loadtools.metrics import metric_for
from orchestrator.results.blocks import Cell, Likeness, Measured, Place
from orchestrator.stats.many import Brief, compare_columns

_PACKED = """
WITH series AS (
    SELECT series.id, series.case_id, series.host_id, metric.key
    FROM results_series series
    JOIN results_metric metric ON metric.id = series.metric_id
    WHERE series.benchmark_id = %(benchmark)s AND metric.key = ANY(%(metrics)s)
), before AS (
    SELECT point.series_id, point.epoch, point.shape, point."values", point.blocks
    FROM results_point point JOIN series ON series.id = point.series_id
    WHERE point.commit_id = %(baseline)s
), after AS (
    SELECT point.series_id, point.epoch, point.shape, point."values", point.blocks
    FROM results_point point JOIN series ON series.id = point.series_id
    WHERE point.commit_id = %(contender)s
)
SELECT coalesce(bool_and(before.blocks = after.blocks AND NOT 0 = ANY(before.blocks)), false)
           AND count(*) = count(DISTINCT series.id)
           AND count(*) = count(before.blocks) AND count(*) = count(after.blocks)
           AND min(cardinality(before."values")) = max(cardinality(before."values")),
       min(cardinality(before."values")),
       array_agg(series.case_id), array_agg(series.host_id::text), array_agg(series.key),
       string_agg(array_send(before."values"), ''), string_agg(array_send(after."values"), '')
FROM before
FULL JOIN after USING (series_id, epoch, shape)
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
        usual, blocks, *columns = cursor.fetchone()
    if not usual or blocks < 2:
        return None
    cases, hosts, keys, *packed = columns
    before, after = (_values(each, blocks) for each in packed)
    if not (before > 0).all() or not (after > 0).all():
        return None
    return _compared(cases, hosts, keys, before, after)


def _values(packed: bytes, blocks: int) -> NDArray[np.float64]:
    """Cells × blocks, of arrays as `array_send` writes them, one after the other."""
    item = np.dtype([("size", ">i4"), ("value", ">f8")])
    whole = np.dtype([("head", ">i4", (_HEAD,)), ("items", item, (blocks,))])
    return np.frombuffer(packed, dtype=whole)["items"]["value"].astype(np.float64)


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
    return Cell(baseline=side, contender=side, paired=True, metrics={})
