"""A comparison as a heat map: a tile shows the worst of the cases with the same two axis values.

Axes are those of the matrix and other properties of a case: its host, its hardware profile, its
label and, for rows and columns, the metrics that decide.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.report import (
    CaseComparison,
    ComparisonReport,
    MetricComparison,
)

HOST, PROFILE, CASE, METRIC = "host", "profile", "case", "metric"
#: Marks a missing value.
NONE = "–"
#: With more values, only those with the largest changes are drawn.
MOST_ROWS, MOST_COLUMNS = 40, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """`values` as URLs name them, with their labels; `omitted` more are not drawn."""

    name: str
    title: str
    values: tuple[tuple[str, str], ...]
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """`cases` are in this tile; `case` is the worst of them, by `metric`, which has `verdict`.

    `counts`: verdict → cases. `metric` is None if nothing could be compared.
    """

    case: CaseComparison
    metric: MetricComparison | None
    verdict: str
    cases: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """`metric`: the key of the shown metric; empty if each case shows its worst one."""

    rows: Axis
    columns: Axis
    metric: str
    tiles: Mapping[tuple[str, str], Tile]


#: A case with the metric that represents it, if any, and its verdict.
_TileInput = tuple[CaseComparison, MetricComparison | None, str]


def list_axes(report: ComparisonReport) -> dict[str, Axis]:
    """Return the properties that differ between cases, by name: the matrix first, then metrics."""
    # Cases are in the order of their matrix.
    cases = sorted(report.cases, key=lambda case: case.case.pk)
    names = dict.fromkeys(name for case in cases for name in case.case.parameters)
    axes = [_build_axis(name, cases) for name in names]
    for name in (HOST, PROFILE, CASE):
        if name not in names:
            values = {read_axis_value(case, name) for case in cases}
            axes.append(
                Axis(name=name, title=_format_title(name), values=_build_labels(sorted(values)))
            )
    several = [axis for axis in axes if len(axis.values) > 1]
    metrics = list_primary_metrics(report)
    if len(metrics) > 1 and METRIC not in names:
        several.append(Axis(name=METRIC, title="metric", values=tuple(metrics.items())))
    return {axis.name: axis for axis in several}


def list_primary_metrics(report: ComparisonReport) -> dict[str, str]:
    """Return the metrics that decide: key → title."""
    return {each.key: each.title for case in report.cases for each in case.metrics if each.primary}


def read_axis_value(case: CaseComparison, axis: str) -> str:
    """Return the value of a case on an axis."""
    if axis in case.case.parameters:
        return format_axis_value(case.case.parameters[axis])
    if axis == CASE:
        return case.case.label
    if axis not in (HOST, PROFILE):
        return NONE
    field = "name" if axis == HOST else "profile"
    before, after = getattr(case.host, field), getattr(case.contender_host, field)
    return str(before) if before == after else f"{before} → {after}"


def build_heat_map(
    report: ComparisonReport,
    axes: Mapping[str, Axis],
    *,
    rows: str = "",
    columns: str = "",
    metric: str = "",
) -> HeatMap | None:
    """Return the heat map of the requested axes, by default of two that show much.

    Unknown axes count as not requested. The default includes the hosts. None if no axes were
    requested and the cases differ in fewer than two properties: their list shows the same.
    """
    names = _choose_axes(axes, rows, columns)
    if names is None:
        return None
    metric = metric if metric in list_primary_metrics(report) and METRIC not in names else ""
    lying: dict[tuple[str, str], list[_TileInput]] = defaultdict(list)
    for case in report.cases:
        for key, entry in _iterate_tile_inputs(case, metric, METRIC in names):
            lying[_read_position(case, names[0], key), _read_position(case, names[1], key)].append(
                entry
            )
    tiles = {place: _build_tile(entries) for place, entries in lying.items()}
    return HeatMap(
        rows=_limit_axis(
            axes[names[0]], MOST_ROWS, ((row, each) for (row, _), each in tiles.items())
        ),
        columns=_limit_axis(
            axes[names[1]], MOST_COLUMNS, ((column, each) for (_, column), each in tiles.items())
        ),
        metric=metric,
        tiles=tiles,
    )


def _build_axis(name: str, cases: Sequence[CaseComparison]) -> Axis:
    """Return an axis with its values in the order of the matrix; numbers by size."""
    raw = [case.case.parameters.get(name) for case in cases]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in raw):
        raw.sort()
    texts = [NONE if value is None else format_axis_value(value) for value in raw]
    return Axis(name=name, title=_format_title(name), values=_build_labels(dict.fromkeys(texts)))


def _format_title(name: str) -> str:
    return name.replace("_", " ")


def _build_labels(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((value, value) for value in values)


def _choose_axes(axes: Mapping[str, Axis], rows: str, columns: str) -> tuple[str, str] | None:
    requested = rows in axes or columns in axes
    telling = [name for name in axes if name not in (PROFILE, CASE, METRIC)]
    if not requested and len(telling) < 2:
        return None
    telling.sort(key=lambda name: (len(axes[name].values) > MOST_ROWS, -len(axes[name].values)))
    usual = [*telling, *(name for name in (METRIC, CASE, PROFILE) if name in axes)]
    if columns not in axes or columns == rows:
        hosts = HOST in axes and rows != HOST
        others = [name for name in usual if name != rows]
        columns = HOST if hosts else next(iter(others if rows in axes else others[1:]), "")
    if rows not in axes:
        rows = next((name for name in usual if name != columns), "")
    return (rows, columns) if rows and columns else None


def _iterate_tile_inputs(
    case: CaseComparison, metric: str, each: bool
) -> Iterator[tuple[str, _TileInput]]:
    """Yield (key, shown metric) of a case: one metric, each metric of `each`, or the worst one."""
    if each or metric:
        for one in case.metrics:
            if one.primary and metric in ("", one.key):
                yield one.key, (case, one, one.verdict)
        return
    same = (one for one in case.metrics if one.primary and one.verdict == case.verdict)
    yield "", (case, max(same, key=_measure_change, default=None), case.verdict)


def _measure_change(metric: MetricComparison | None) -> float:
    return abs(metric.change or 0.0) if metric else 0.0


def _read_position(case: CaseComparison, axis: str, key: str) -> str:
    return key if axis == METRIC else read_axis_value(case, axis)


def _build_tile(entries: Sequence[_TileInput]) -> Tile:
    case, metric, verdict = min(entries, key=lambda entry: _rank_severity(entry[2], entry[1]))
    return Tile(
        case=case,
        metric=metric,
        verdict=verdict,
        cases=len(entries),
        counts=Counter(entry[2] for entry in entries),
    )


def _rank_severity(verdict: str, metric: MetricComparison | None) -> tuple[int, float]:
    return ORDER[verdict], -_measure_change(metric)


def _limit_axis(axis: Axis, most: int, tiles: Iterable[tuple[str, Tile]]) -> Axis:
    """Return the axis with at most `most` values: those with the worst tiles."""
    if len(axis.values) <= most:
        return axis
    worst: dict[str, tuple[int, float]] = {}
    for value, tile in tiles:
        severity = _rank_severity(tile.verdict, tile.metric)
        worst[value] = min(severity, worst.get(value, severity))
    last = (len(ORDER), 0.0)
    kept = sorted(axis.values, key=lambda value: worst.get(value[0], last))[:most]
    return replace(
        axis,
        values=tuple(value for value in axis.values if value in set(kept)),
        omitted=len(axis.values) - most,
    )
