"""Reports for their pages: cells as text, and charts."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from cli.pitwall.units import format_items
from orchestrator.reports.cell_texts import format_cell, format_interval
from orchestrator.reports.charts import Chart, build_charts
from orchestrator.reports.evidence import find_point_series, load_cell_series
from orchestrator.reports.exports import ChartAddress
from orchestrator.reports.pivot_model import Cell, PivotTable, TableColumn, TableRow
from orchestrator.reports.report_builder import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    cell: Cell
    text: str
    interval: str
    evidence: str

    @property
    def trials(self) -> str:
        """Return "6 trials of 2 runs; excluded: 1 invalid, 2 suspect"."""
        cell = self.cell
        text = f"{format_items(cell.trials, 'trial')} of {format_items(cell.runs, 'run')}"
        counts = {"invalid": cell.excluded, "suspect": cell.excluded_suspects}
        excluded = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        return f"{text}; excluded: {excluded}" if excluded else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    row: TableRow
    cells: tuple[CellView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart, and the address of its SVG file."""

    chart: Chart
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """`number` counts the tables of the page from 1."""

    number: int
    table: PivotTable
    columns: tuple[tuple[TableColumn, bool], ...]
    rows: tuple[RowView, ...]
    charts: tuple[ChartView, ...]


def build_table_views(
    report: Report, address: ChartAddress, *, linked: bool = True
) -> list[TableView]:
    """Return the tables; the numbers are links to their trials if they are `linked`."""
    links = _PointLinks(report, linked=linked)
    drawn = [
        tuple(ChartView(chart=chart, address=address(chart)) for chart in charts)
        for charts in build_charts(report)
    ]
    return [
        _build_table_view(table, charts, number, links)
        for number, (table, charts) in enumerate(zip(report.tables, drawn, strict=True), start=1)
    ]


class _PointLinks:
    """Return the address of a cell's trials; empty if there are none."""

    def __init__(self, report: Report, *, linked: bool) -> None:
        self.points = load_cell_series(report) if linked else {}
        self.shas = {commit.pk: commit.sha for commit in report.commits}

    def build_url(self, cell: Cell, column: TableColumn) -> str:
        origin = cell.origin
        if origin is None or cell.value is None or origin.commit not in self.shas:
            return ""
        series = find_point_series(self.points, origin, column.metric)
        return reverse("history-point", args=[series, self.shas[origin.commit]]) if series else ""


def _build_table_view(
    table: PivotTable, charts: tuple[ChartView, ...], number: int, links: _PointLinks
) -> TableView:
    return TableView(
        number=number,
        table=table,
        columns=tuple(
            (column, place == table.sorted_by) for place, column in enumerate(table.columns)
        ),
        rows=tuple(_build_row(row, table.columns, links) for row in table.rows),
        charts=charts,
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
