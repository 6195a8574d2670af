"""The cells of a table as marks of its charts, with their colours and texts. Pure."""

import math
from collections.abc import Sequence

from orchestrator.reports.cell_texts import format_cell, format_interval
from orchestrator.reports.chart_model import Mark
from orchestrator.reports.chart_spec import ChartSpec, matches
from orchestrator.reports.pivot_model import (
    PUBLISHED_SUFFIX,
    Cell,
    PivotTable,
    TableColumn,
    TableRow,
)
from orchestrator.reports.spec_fields import find_known_metric


def number_colours(titles: Sequence[str]) -> dict[str, int]:
    """Return a number for each title; a reference result has that of the measured one."""
    numbers: dict[str, int] = {}
    for title in titles:
        base = title.removesuffix(PUBLISHED_SUFFIX)
        numbers[title] = numbers.get(base, len(set(numbers.values())))
    return numbers


def choose_columns(table: PivotTable, spec: ChartSpec) -> list[int]:
    """Return the columns of a chart: the first chosen one, and the others of its metric and unit.

    Without a choice, the first one is that of the ranking.
    """
    chosen = [n for n, column in enumerate(table.columns) if is_chosen(spec, column)]
    if not chosen:
        return []
    first = table.sorted_by if table.sorted_by in chosen else chosen[0]
    alike = _identify(table.columns[first])
    return [place for place in chosen if _identify(table.columns[place]) == alike]


def is_chosen(spec: ChartSpec, column: TableColumn) -> bool:
    return not spec.columns or any(matches(pattern, column.title) for pattern in spec.columns)


def _identify(column: TableColumn) -> tuple[str | None, str, str]:
    return (column.metric, column.unit, column.kind)


def list_rows_with_values(table: PivotTable, places: Sequence[int]) -> list[TableRow]:
    return [row for row in table.rows if any(row.cells[n].value is not None for n in places)]


def count_values(rows: Sequence[TableRow], places: Sequence[int]) -> int:
    return sum(row.cells[place].value is not None for row in rows for place in places)


def build_mark(row: TableRow, column: TableColumn, place: int, name: str = "") -> Mark | None:
    cell = row.cells[place]
    if cell.value is None or not math.isfinite(cell.value):
        return None
    shown = format_cell(cell, column)
    bounds = format_interval(cell)
    words = [name or name_row(row), f"{column.title} {format_with_unit(cell, column)}"]
    return Mark(
        value=cell.value,
        low=cell.low,
        high=cell.high,
        published=cell.published,
        shown=shown,
        hint=f"{', '.join(words)}{f' ({bounds})' if bounds else ''}",
    )


def build_mark_or_word(row: TableRow, column: TableColumn, place: int) -> Mark | str:
    return build_mark(row, column, place) or format_cell(row.cells[place], column)


def format_with_unit(cell: Cell, column: TableColumn) -> str:
    text = format_cell(cell, column)
    has_unit = not cell.unit or cell.unit in text or text == "baseline"
    return text if has_unit else f"{text} {cell.unit}"


def name_row(row: TableRow) -> str:
    return " · ".join(filter(None, row.heads)) or "–"


def name_axis(columns: Sequence[TableColumn]) -> str:
    """Return the title of the values: that of the only column, or the metric of several."""
    first = columns[0]
    titles = {column.title.removesuffix(PUBLISHED_SUFFIX) for column in columns}
    metric = find_known_metric(first.metric) if first.metric else None
    if len(titles) == 1 or metric is None:
        return first.heading
    words = f"{metric.title}, change" if first.kind == "change" else metric.title
    return f"{words} ({first.unit})" if first.unit else words


def find_metric_head(table: PivotTable) -> int | None:
    dimensions = [head.dimension for head in table.heads]
    return dimensions.index("metric") if "metric" in dimensions else None


def describe_left_out(count: int, most: int, noun: str) -> str:
    """Return which part of `count` is drawn; empty if it is all."""
    return f"The first {most} of {count} {noun}s." if count > most else ""
