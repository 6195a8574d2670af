"""Reports for their pages: cells as text, and data for charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from cli.pitwall.units import format_items
from orchestrator.reports.evidence import find_point_series, load_cell_series
from orchestrator.reports.exports import format_cell, format_interval
from orchestrator.reports.pivot_model import Cell, PivotTable, TableColumn, TableRow
from orchestrator.reports.report_builder import Report

#: With more bars a chart is unreadable; the table has them all.
MAX_BARS = 60
MAX_SERIES = 6
#: Heights of a bar chart in pixels: the least, its axis and legend, each label, each bar.
_CHART_HEIGHTS = (134, 64, 10, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    cell: Cell
    text: str
    interval: str
    evidence: str

    @property
    def trials(self) -> str:
        """Return "6 trials of 2 runs, 1 invalid excluded"."""
        cell = self.cell
        text = f"{format_items(cell.trials, 'trial')} of {format_items(cell.runs, 'run')}"
        return f"{text}, {cell.excluded} invalid excluded" if cell.excluded else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    row: TableRow
    cells: tuple[CellView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """`number` counts the tables of the page from 1."""

    number: int
    table: PivotTable
    columns: tuple[tuple[TableColumn, bool], ...]
    rows: tuple[RowView, ...]
    chart_id: str
    chart: dict[str, Any] | None


def build_table_views(report: Report) -> list[TableView]:
    links = _PointLinks(report)
    return [
        _build_table_view(table, number, links)
        for number, table in enumerate(report.tables, start=1)
    ]


class _PointLinks:
    """Return the address of a cell's trials; empty if there are none."""

    def __init__(self, report: Report) -> None:
        self.points = load_cell_series(report)
        self.shas = {commit.pk: commit.sha for commit in report.commits}

    def build_url(self, cell: Cell, column: TableColumn) -> str:
        origin = cell.origin
        if origin is None or cell.value is None or origin.commit not in self.shas:
            return ""
        series = find_point_series(self.points, origin, column.metric)
        return reverse("history-point", args=[series, self.shas[origin.commit]]) if series else ""


def _build_table_view(table: PivotTable, number: int, links: _PointLinks) -> TableView:
    return TableView(
        number=number,
        table=table,
        columns=tuple(
            (column, place == table.sorted_by) for place, column in enumerate(table.columns)
        ),
        rows=tuple(_build_row(row, table.columns, links) for row in table.rows),
        chart_id=f"report-chart-{number}",
        chart=build_bar_chart(table),
    )


def _build_row(row: TableRow, columns: Sequence[TableColumn], links: _PointLinks) -> RowView:
    cells = (
        CellView(
            cell=cell,
            text=format_cell(cell, column),
            interval=format_interval(cell),
            evidence=links.build_url(cell, column),
        )
        for cell, column in zip(row.cells, columns, strict=True)
    )
    return RowView(row=row, cells=tuple(cells))


def build_bar_chart(table: PivotTable) -> dict[str, Any] | None:
    """Return bars with intervals, for the column that the table is sorted by, or the first.

    Other columns with the same metric and unit are added. `height` is in pixels. None without two
    numbers to compare.
    """
    if any(head.dimension == "metric" for head in table.heads):
        return None
    first = table.columns[table.sorted_by or 0]
    alike = [
        place
        for place, column in enumerate(table.columns)
        if (column.metric, column.unit, column.kind) == (first.metric, first.unit, first.kind)
    ][:MAX_SERIES]
    rows = [row for row in table.rows if any(row.cells[n].value is not None for n in alike)]
    numbers = sum(row.cells[place].value is not None for row in rows for place in alike)
    if numbers < 2 or len(rows) > MAX_BARS:
        return None
    least, axis, per_label, per_bar = _CHART_HEIGHTS
    return {
        "unit": first.unit,
        "height": max(least, axis + len(rows) * (per_label + len(alike) * per_bar)),
        "labels": [" · ".join(filter(None, row.heads)) for row in rows],
        "series": [
            _build_series(table.columns[place], [row.cells[place] for row in rows])
            for place in alike
        ],
    }


def _build_series(column: TableColumn, cells: Sequence[Cell]) -> dict[str, Any]:
    return {
        "label": column.title,
        "published": column.published,
        "points": [
            {
                "value": cell.value,
                "low": cell.low,
                "high": cell.high,
                "shown": format_cell(cell, column),
            }
            for cell in cells
        ],
    }
