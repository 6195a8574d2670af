"""Reports without unmeasured rows and columns, such as those of a selection of a suite."""

from dataclasses import replace

from cli.pitwall.units import format_items
from orchestrator.reports.pivot_model import Cell, PivotTable, TableRow
from orchestrator.reports.report_builder import Report

#: A cell of these kinds says nothing about a measurement.
_UNTRIED = frozenset({"absent", "unmeasured", "unsupported"})


def keep_measured_parts(report: Report) -> Report:
    """Return the report without unmeasured rows and columns, and without tables that have no other
    rows.

    A row or column with invalid or failed trials remains. Each table says how many it omits.
    """
    tables = map(_keep_parts, report.tables)
    pairs = [pair for pair in zip(report.spec.tables, tables, strict=True) if pair[1].rows]
    spec = report.spec.model_copy(update={"tables": [spec for spec, _ in pairs]})
    return replace(report, spec=spec, tables=tuple(table for _, table in pairs))


def _keep_parts(table: PivotTable) -> PivotTable:
    rows = [row for row in table.rows if any(_is_measured(cell) for cell in row.cells)]
    places = [place for place in range(len(table.columns)) if _has_values(rows, place)]
    omitted = len(table.rows) - len(rows), len(table.columns) - len(places)
    if not any(omitted):
        return table
    sorted_by = places.index(table.sorted_by) if table.sorted_by in places else None
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(_select_cells(row, places) for row in rows),
        sorted_by=sorted_by,
        notes=(*table.notes, _describe(*omitted)),
    )


def _has_values(rows: list[TableRow], place: int) -> bool:
    """Return whether a column has a measurement or a reference result."""
    return any(row.cells[place].kind not in _UNTRIED for row in rows)


def _select_cells(row: TableRow, places: list[int]) -> TableRow:
    return replace(row, cells=tuple(row.cells[place] for place in places))


def _describe(rows: int, columns: int) -> str:
    counts = {"row": rows, "column": columns}
    parts = [format_items(count, name) for name, count in counts.items() if count]
    verbs = ("was", "is") if rows + columns == 1 else ("were", "are")
    return f"{' and '.join(parts)} that {verbs[0]} not measured here {verbs[1]} omitted."


def _is_measured(cell: Cell) -> bool:
    return not cell.published and cell.kind not in _UNTRIED
