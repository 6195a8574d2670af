"""Reports without the rows that were not measured, such as of a selection of a suite."""

from dataclasses import replace

from orchestrator.reports.pivot_model import PivotTable, TableRow
from orchestrator.reports.report_builder import Report

#: A cell of these kinds says nothing about a measurement.
_UNTRIED = frozenset({"absent", "unmeasured", "unsupported"})


def keep_measured_rows(report: Report) -> Report:
    """Return the report without rows of which nothing was measured, and without empty tables.

    A row with invalid or failed trials remains. Each table says how many rows it omits.
    """
    pairs = zip(report.spec.tables, report.tables, strict=True)
    kept = [(spec, _keep_rows(table)) for spec, table in pairs if _list_measured(table)]
    spec = report.spec.model_copy(update={"tables": [spec for spec, _ in kept]})
    return replace(report, spec=spec, tables=tuple(table for _, table in kept))


def _keep_rows(table: PivotTable) -> PivotTable:
    rows = _list_measured(table)
    omitted = len(table.rows) - len(rows)
    if not omitted:
        return table
    return replace(table, rows=rows, notes=(*table.notes, _describe(omitted)))


def _describe(omitted: int) -> str:
    if omitted == 1:
        return "1 row that was not measured here is omitted."
    return f"{omitted} rows that were not measured here are omitted."


def _list_measured(table: PivotTable) -> tuple[TableRow, ...]:
    return tuple(row for row in table.rows if _is_measured(row))


def _is_measured(row: TableRow) -> bool:
    return any(not cell.published and cell.kind not in _UNTRIED for cell in row.cells)
