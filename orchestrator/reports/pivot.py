"""Builds a table from observations: rows, columns, cells, ranks. Pure functions.

A cell has one case only: values of different cases, hosts or commits are never combined. Dimensions
that vary within a cell become further headings of the rows.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from cli.pitwall.units import format_items
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import LATENCY_LABELS
from orchestrator.reports.pivot_bases import (
    Bases,
    build_base_notes,
    build_bases,
    build_pairing_notes,
    compute_change,
)
from orchestrator.reports.pivot_cells import (
    CellValue,
    compute_difference,
    find_shared,
    read_cell,
)
from orchestrator.reports.pivot_columns import (
    Orders,
    Spread,
    find_spread,
    select_observations,
    spread_columns,
)
from orchestrator.reports.pivot_model import (
    FEWEST_VALID,
    Cell,
    Head,
    Observation,
    PivotTable,
    TableRow,
    names_unit,
)
from orchestrator.reports.pivot_order import build_sorting_notes, rank_rows
from orchestrator.reports.report_spec import Dimension, Measure, ReportSpec, TableSpec
from orchestrator.stats.unpaired import FEWEST_RUNS

Columns = Sequence[tuple[Spread, Callable[[Observation], bool]]]
#: The texts of a row's dimensions, and the index of its metric (0 if rows have none).
Key = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The common data of a table's rows. `added` are varying dimensions that are not in the
    report."""

    report: ReportSpec
    table: TableSpec
    columns: Columns
    dimensions: tuple[Dimension, ...]
    added: frozenset[str]
    bases: Bases

    @property
    def spreads(self) -> list[Spread]:
        return [column for column, _ in self.columns]


def build_table(
    report: ReportSpec,
    table: TableSpec,
    observations: Sequence[Observation],
    *,
    orders: Mapping[str, Sequence[str]],
    axes: Sequence[str],
    contest: str | None = None,
) -> PivotTable:
    """Build one table of a report. `orders`: dimension → its values in order; `axes`: of the
    matrix; `contest`: the one whose values are compared in pairs.

    InvalidRequestError if an expression has an unknown name, or selects no case.
    """
    places = Orders(orders)
    seen = select_observations(observations, table.cases, "cases")
    if report.published == "none":
        seen = [each for each in seen if not each.is_published]
    if not seen:
        raise InvalidRequestError("cases: no case matches this expression", field="cases")
    spread = spread_columns(report, table, seen, places)
    frame = _build_frame(report, table, seen, spread, axes, contest)
    rows = [_build_row(frame, key, inside) for key, inside in _order_rows(frame, seen, places)]
    columns = tuple(each.build_column(table, frame.spreads) for each in frame.spreads)
    models = {each.model for each in seen if each.model and not each.is_published}
    rows, sorted_by = rank_rows(
        rows, columns, table.sort, groups=_find_group_headings(frame), models=models
    )
    return PivotTable(
        title=table.title,
        description=table.description,
        heads=_build_heads(frame),
        columns=columns,
        rows=tuple(rows),
        sorted_by=sorted_by,
        notes=(
            *_build_loop_notes(frame, seen, models),
            *(build_base_notes(table.columns) or build_pairing_notes(columns, rows)),
            *_build_notes(rows, table, sorted_by, _name_machines(seen)),
        ),
    )


def _build_frame(
    report: ReportSpec,
    table: TableSpec,
    seen: Sequence[Observation],
    columns: Columns,
    axes: Sequence[str],
    contest: str | None,
) -> _Frame:
    named = [each for each in table.rows if each.dimension != "metric"]
    if report.published == "rows" and any(each.is_published for each in seen):
        named += [Dimension(dimension=name) for name in ("source", "host") if not _has(named, name)]
    added = _find_varying(named, seen, columns, axes)
    # Machines and commits come first, so that the rows below each can be compared.
    first = [name for name in ("commit", "host") if name in added]
    last = [name for name in added if name not in first]
    dimensions = (
        *(Dimension(dimension=name) for name in first),
        *named,
        *(Dimension(dimension=name) for name in last),
    )
    return _Frame(
        report=report,
        table=table,
        columns=columns,
        dimensions=dimensions,
        added=frozenset(added),
        bases=build_bases(seen, axes, contest),
    )


def _has(dimensions: Sequence[Dimension], name: str) -> bool:
    return any(each.dimension == name for each in dimensions)


def _find_varying(
    named: Sequence[Dimension],
    seen: Sequence[Observation],
    columns: Columns,
    axes: Sequence[str],
) -> list[str]:
    """Return the dimensions that must be added so that no cell has several observations."""
    rows = [each.dimension for each in named]
    added: list[str] = []
    candidates = ["host", "commit", *axes, "source"]
    for _ in candidates:
        crowd = _find_crowded_cell([*rows, *added], seen, columns)
        name = next((n for n in candidates if len({each.get_value(n) for each in crowd}) > 1), None)
        if name is None:
            break
        added.append(name)
        candidates = [each for each in candidates if each != name]
    return added


def _find_crowded_cell(
    rows: Sequence[str], seen: Sequence[Observation], columns: Columns
) -> list[Observation]:
    """Return the observations of the first cell that has several; empty if no cell has."""
    for column, belongs in columns:
        if column.spec.difference or column.spec.shared:
            continue
        cells: dict[tuple[str, ...], list[Observation]] = defaultdict(list)
        for each in filter(belongs, seen):
            cells[tuple(each.get_value(name) for name in rows)].append(each)
        for inside in cells.values():
            if len(inside) > 1:
                return inside
    return []


def _order_rows(
    frame: _Frame, seen: Sequence[Observation], orders: Orders
) -> list[tuple[Key, list[Observation]]]:
    names = [each.dimension for each in frame.dimensions]
    rows: dict[tuple[str, ...], list[Observation]] = defaultdict(list)
    for each in seen:
        if any(belongs(each) for spec, belongs in frame.columns if not spec.spec.difference):
            rows[tuple(each.get_value(name) for name in names)].append(each)
    whole = range(max(1, len(frame.table.metrics)))
    at = _find_metric_place(frame)
    entries = [((values, number), inside) for values, inside in rows.items() for number in whole]

    def place(item: tuple[Key, list[Observation]]) -> list[object]:
        (values, number), _ = item
        keys: list[object] = [orders.place(n, v) for n, v in zip(names, values, strict=True)]
        keys.insert(at, (number, ""))
        return keys

    return sorted(entries, key=place)


def _find_metric_place(frame: _Frame) -> int:
    """Return the index of the metric among the headings of the rows; after the last if not
    there."""
    if not frame.table.by_metric:
        return len(frame.dimensions)
    before = [each.dimension for each in frame.table.rows]
    ahead = set(before[: before.index("metric")])
    inside = [place for place, each in enumerate(frame.dimensions) if each.dimension in ahead]
    leading = sum(name in frame.added for name in ("commit", "host"))
    return max([place + 1 for place in inside], default=leading)


def _build_heads(frame: _Frame) -> tuple[Head, ...]:
    heads = [Head(dimension=each.dimension, title=each.heading) for each in frame.dimensions]
    if frame.table.by_metric:
        metric = next(each for each in frame.table.rows if each.dimension == "metric")
        heads.insert(_find_metric_place(frame), Head(dimension="metric", title=metric.heading))
    return tuple(heads)


def _build_row(frame: _Frame, key: Key, inside: Sequence[Observation]) -> TableRow:
    values, number = key
    measure = frame.table.metrics[number] if frame.table.by_metric else None
    cells = _build_cells(frame, inside, measure)
    names = [each.dimension for each in frame.dimensions]
    heads = [frame.report.named(n, v, v) for n, v in zip(names, values, strict=True)]
    raw = list(values)
    if measure is not None:
        heads.insert(_find_metric_place(frame), measure.heading)
        raw.insert(_find_metric_place(frame), measure.metric)
    return TableRow(
        heads=tuple(heads),
        values=tuple(raw),
        cells=tuple(cells),
        baseline=any(each.baseline for each in inside) and all(each.baseline for each in inside),
    )


def _build_cells(
    frame: _Frame, inside: Sequence[Observation], measure: Measure | None
) -> list[Cell]:
    values: dict[int, CellValue] = {}
    for place, (column, belongs) in enumerate(frame.columns):
        if not column.spec.difference:
            mine = [each for each in inside if belongs(each)]
            values[place] = _find_value(frame, column, mine, column.spec.measure or measure)
    for place, (column, _) in enumerate(frame.columns):
        if column.spec.difference:
            values[place] = _subtract_column(frame, column, values, measure)
    cells = [values[place].cell for place in range(len(frame.columns))]
    if measure is None:
        return cells
    return [
        replace(cell, states_unit=_is_stated(cell, measure.heading, column.title))
        for cell, column in zip(cells, frame.spreads, strict=True)
    ]


def _is_stated(cell: Cell, row: str, column: str) -> bool:
    return names_unit(row, cell.unit) or f"({cell.unit})" in column


def _find_value(
    frame: _Frame, column: Spread, mine: Sequence[Observation], measure: Measure | None
) -> CellValue:
    assert measure is not None
    value = find_shared(mine, measure) if column.spec.shared else read_cell(mine, measure)
    if not column.spec.relative or len(mine) != 1:
        return value
    return compute_change(value, mine[0], column.spec, frame.bases, measure)


def _subtract_column(
    frame: _Frame, column: Spread, values: Mapping[int, CellValue], measure: Measure | None
) -> CellValue:
    assert column.spec.difference is not None
    spreads = frame.spreads
    first, second = (find_spread(spreads, title) for title in column.spec.difference)
    shown = first.spec.measure or measure
    assert shown is not None
    one, other = values[spreads.index(first)], values[spreads.index(second)]
    return compute_difference(one, other, shown, column.spec.decimals)


def _find_group_headings(frame: _Frame) -> list[int]:
    """Return the headings that separate rankings: the varying dimensions that were added."""
    return [n for n, each in enumerate(frame.dimensions) if each.dimension in frame.added]


def _build_loop_notes(
    frame: _Frame, seen: Sequence[Observation], models: Collection[str]
) -> list[str]:
    """Return the notes on latencies; name their columns if these differ."""
    metrics = [each.metric for each in frame.table.metrics]
    metrics += [each.spec.metric or "" for each in frame.spreads]
    if not any(metric.startswith("latency.") for metric in metrics):
        return []
    labels = {model: text for model, text in LATENCY_LABELS.items() if model in models}
    if len(labels) < 2:
        return [f"Latency: {text}." for text in labels.values()]
    titles: dict[str, list[str]] = defaultdict(list)
    for column, belongs in frame.columns:
        inside = {each.model for each in seen if each.model and belongs(each)}
        if len(inside) == 1 and not column.spec.difference and not column.published:
            titles[min(inside)].append(column.title)
    return [
        f"Latency{' of ' + ', '.join(titles[model]) if model in titles else ''}: {text}."
        for model, text in labels.items()
    ]


def _name_machines(seen: Sequence[Observation]) -> str:
    """Name the machines of the reference results."""
    return ", ".join(dict.fromkeys(each.get_value("host") for each in seen if each.is_published))


def _build_notes(
    rows: Sequence[TableRow],
    table: TableSpec,
    sorted_by: int | None,
    machines: str,
) -> tuple[str, ...]:
    cells = [cell for row in rows for cell in row.cells]
    notes = build_sorting_notes(rows, table.sort, sorted_by)
    suspect = sum(cell.suspect > 0 for cell in cells)
    if suspect:
        notes.append(f"{suspect} cells contain suspect trials; they are marked with !.")
    without = sum(cell.excluded_suspects > 0 for cell in cells)
    if without:
        notes.append(
            f"Suspect trials were excluded from {format_items(without, 'cell')} with at least "
            f"{FEWEST_VALID} valid ones."
        )
    unbounded = sum(0 < cell.runs < FEWEST_RUNS and not cell.paired for cell in cells)
    if unbounded:
        notes.append(
            f"No interval: {format_items(unbounded, 'number')} of fewer than {FEWEST_RUNS} runs, "
            "because the noise between runs is not known."
        )
    if any(cell.excluded and cell.kind == "value" for cell in cells):
        notes.append("Invalid trials were excluded from some cells.")
    if any(cell.published for cell in cells):
        notes.append(
            f"Reference results are imported, from {machines}, and are not part of any statistic."
        )
    return tuple(notes)
