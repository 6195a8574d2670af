"""Reports without the rows that were not measured, such as of a selection of a suite."""

from dataclasses import replace

from orchestrator.reports.pivot_model import PivotTable, TableRow
from orchestrator.reports.report_builder import Report

#: A cell of these kinds says nothing about a measurement.
_UNTRIED = frozenset({"absent", "unmeasured", "unsupported"})


def keep_measured_rows(report: Report) -> Report:
    """Return the report without unmeasured rows, and without tables that have no other rows.

    A row with invalid or failed trials remains. Each table says how many rows it omits.
    """
    tables = map(_keep_rows, report.tables)
    pairs = [pair for pair in zip(report.spec.tables, tables, strict=True) if pair[1].rows]
    spec = report.spec.model_copy(update={"tables": [spec for spec, _ in pairs]})
    return replace(report, spec=spec, tables=tuple(table for _, table in pairs))


def _keep_rows(table: PivotTable) -> PivotTable:
    rows = tuple(row for row in table.rows if _is_measured(row))
    omitted = len(table.rows) - len(rows)
    if not omitted:
        return table
    return replace(table, rows=rows, notes=(*table.notes, _describe(omitted)))


def _describe(omitted: int) -> str:
    if omitted == 1:
        return "1 row that was not measured here is omitted."
    return f"{omitted} rows that were not measured here are omitted."


def _is_measured(row: TableRow) -> bool:
    return any(not cell.published and cell.kind not in _UNTRIED for cell in row.cells)
