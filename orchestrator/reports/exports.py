"""Reports as Markdown, CSV and JSON, with the same content."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from orchestrator.core.spreadsheets import render_csv
from orchestrator.reports.cell_texts import format_cell, format_interval
from orchestrator.reports.charts import Chart, build_charts
from orchestrator.reports.claim_exports import (
    TITLE,
    export_claims,
    iterate_claim_rows,
    render_claims,
)
from orchestrator.reports.hardware import HEADS, Machine
from orchestrator.reports.markdown_tables import render_line, render_rule
from orchestrator.reports.pivot_model import (
    WORDS,
    Cell,
    PivotTable,
    TableColumn,
    TableRow,
)
from orchestrator.reports.provenance import Provenance, load_provenance
from orchestrator.reports.report_builder import Report

#: What remains as it is in the address of a picture.
_URL_CHARACTERS = "/:?&=%#~+,;@!$'*"
_CSV_PARTS = ("", "low", "high", "trials", "runs", "suspect", "reason")


#: Return the address of a chart's picture for a document.
ChartAddress = Callable[[Chart], str]


def report_markdown(
    report: Report, provenance: bool = True, *, address: ChartAddress | None = None
) -> str:
    """Format the report as a document; with `provenance` it includes that of each value.

    It contains no pictures without the `address` of each.
    """
    parts = [f"# {report.spec.title}"]
    if report.spec.description:
        parts.append(report.spec.description.strip())
    if report.spec.prose:
        parts.append(report.spec.prose.strip())
    for table, charts in zip(report.tables, build_charts(report), strict=True):
        pictures = [_render_picture(chart, address(chart)) for chart in charts] if address else []
        parts += _render_table_parts(table, pictures)
    parts += [f"- {note}" for note in report.notes]
    record = load_provenance(report)
    if record.machines:
        parts += ["## Hardware", _render_hardware(record.machines)]
    parts += render_claims(report, record)
    if provenance:
        parts.append(_render_provenance(record))
    return "\n\n".join(parts) + "\n"


def report_csv(report: Report) -> str:
    """Format one table below the other, separated by an empty line, in the units of the headings.

    Each column is followed by its interval, the numbers of its trials, runs and suspect trials, and
    the reason for a missing value.
    """
    rows: list[Sequence[object]] = []
    for place, table in enumerate(report.tables):
        if place:
            rows.append([])
        if len(report.tables) > 1:
            rows.append([table.title])
        rows.extend(_iterate_csv_rows(table))
    if claims := list(iterate_claim_rows(report.claims)):
        rows += [[], [TITLE], *claims]
    return render_csv(rows)


def report_json(report: Report) -> str:
    return json.dumps(report_data(report), indent=1, ensure_ascii=False) + "\n"


def report_data(report: Report) -> dict[str, Any]:
    """Return the report as plain data for programs."""
    record = load_provenance(report)
    return {
        "title": report.spec.title,
        "benchmark": f"{report.benchmark.project.slug}/{report.benchmark.slug}",
        "commits": [commit.sha for commit in report.commits],
        "hosts": [host.name for host in report.hosts],
        "definition_versions": list(report.versions),
        "notes": list(report.notes),
        "prose": report.spec.prose,
        "hardware": [_export_machine(each) for each in record.machines],
        "tables": [_export_table(table) for table in report.tables],
        "claims": export_claims(report, record),
        "provenance": _export_provenance(record),
    }


def _render_picture(chart: Chart, address: str) -> str:
    words = re.sub(r"([\\\[\]`*_<&])", r"\\\1", chart.description)
    picture = f"![{words}](<{quote(address, safe=_URL_CHARACTERS)}>)"
    return f"{picture}\n\n{chart.note}" if chart.note else picture


def _render_hardware(machines: Sequence[Machine]) -> str:
    lines = [render_line(HEADS), render_rule(len(HEADS))]
    for each in machines:
        name = f"{each.name}, published" if each.published else each.name
        lines.append(render_line([name, *each.texts]))
    return "\n".join(lines)


def _render_table_parts(table: PivotTable, pictures: Sequence[str]) -> Iterator[str]:
    if table.title:
        yield f"## {table.title}"
    if table.description:
        yield table.description.strip()
    yield from pictures
    footnotes: dict[str, int] = {}
    cells = [cell for row in table.rows for cell in row.cells if cell.trials]
    counts = {cell.trials for cell in cells}
    yield _render_table(table, footnotes, counted=len(counts) > 1)
    if cells:
        yield _build_legend(counts, intervals=any(cell.low is not None for cell in cells))
    if footnotes:
        yield "\n".join(f"{mark}. {reason}" for reason, mark in footnotes.items())
    if table.notes:
        yield "\n".join(f"- {note}" for note in table.notes)


def _build_legend(counts: set[int], *, intervals: bool) -> str:
    """Describe the values of a table, with the number of trials if it is the same for all."""
    parts = ["In brackets: the 95 % interval."] if intervals else []
    if len(counts) > 1:
        parts.append("After ×: the number of trials.")
    else:
        (count,) = counts
        parts.append(f"Each number: {count} trial{'s' if count > 1 else ''}.")
    return " ".join(parts)


def _render_table(table: PivotTable, footnotes: dict[str, int], *, counted: bool) -> str:
    ranked = table.sorted_by is not None
    grouped = table.has_groups
    heads = [
        *(["#"] if ranked else []),
        *(["Group"] if grouped else []),
        *(head.title for head in table.heads),
    ]
    lines = [render_line([*heads, *(column.heading for column in table.columns)])]
    lines.append(render_rule(len(heads), len(table.columns)))
    for row in table.rows:
        first = [*([row.rank_text] if ranked else []), *([row.groups] if grouped else [])]
        cells = [
            _render_cell(cell, column, footnotes, counted=counted)
            for cell, column in zip(row.cells, table.columns, strict=True)
        ]
        lines.append(render_line([*first, *row.heads, *cells]))
    return "\n".join(lines)


def _render_cell(
    cell: Cell, column: TableColumn, footnotes: dict[str, int], *, counted: bool
) -> str:
    text = format_cell(cell, column)
    if cell.value is None:
        if cell.kind in ("absent", "unmeasured") or not cell.reason:
            return text
        return f"{text} [{footnotes.setdefault(cell.reason, len(footnotes) + 1)}]"
    if bounds := format_interval(cell):
        text += f" ({bounds})"
    if counted and cell.trials:
        text += f" ×{cell.trials}"
    return f"{text} !" if cell.suspect else text


def _iterate_csv_rows(table: PivotTable) -> Iterator[list[object]]:
    ranked = table.sorted_by is not None
    heads = [
        *(["best_rank", "worst_rank"] if ranked else []),
        *(["group"] if table.has_groups else []),
        *(head.title for head in table.heads),
    ]
    columns = [
        f"{column.heading} {part}".strip() for column in table.columns for part in _CSV_PARTS
    ]
    yield [*heads, *columns]
    for row in table.rows:
        first: list[object] = [*(row.ranks or ("", ""))] if ranked else []
        first += [row.groups] if table.has_groups else []
        cells = [value for cell in row.cells for value in _build_csv_cell(cell)]
        yield [*first, *row.heads, *cells]


def _build_csv_cell(cell: Cell) -> list[object]:
    numbers = [cell.value, cell.low, cell.high]
    reason = (
        "" if cell.value is not None else ": ".join(filter(None, [WORDS[cell.kind], cell.reason]))
    )
    return [*numbers, cell.trials, cell.runs, cell.suspect, reason]


def _export_machine(machine: Machine) -> dict[str, Any]:
    facts = zip(HEADS[1:], machine.texts, strict=True)
    return {
        "name": machine.name,
        "published": machine.published,
        "facts": [{"title": title, "text": text} for title, text in facts],
    }


def _export_table(table: PivotTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "heads": [{"dimension": each.dimension, "title": each.title} for each in table.heads],
        "columns": [
            {
                "title": each.title,
                "kind": each.kind,
                "metric": each.metric,
                "statistic": each.statistic,
                "unit": each.unit,
                "better": each.better,
                "published": each.published,
            }
            for each in table.columns
        ],
        "sorted_by": table.sorted_by,
        "rows": [_export_row(row) for row in table.rows],
        "notes": list(table.notes),
    }


def _export_row(row: TableRow) -> dict[str, Any]:
    return {
        "heads": list(row.heads),
        "baseline": row.baseline,
        "ranks": row.ranks,
        "groups": row.groups,
        "cells": [
            {
                "kind": cell.kind,
                "value": cell.value,
                "low": cell.low,
                "high": cell.high,
                "unit": cell.unit,
                "trials": cell.trials,
                "runs": cell.runs,
                "suspect": cell.suspect,
                "excluded": cell.excluded,
                "excluded_suspects": cell.excluded_suspects,
                "reason": cell.reason,
                "baseline": cell.baseline,
                "published": cell.published,
                "paired": cell.paired,
            }
            for cell in row.cells
        ],
    }


def _export_provenance(record: Provenance) -> dict[str, Any]:
    return {
        "facts": _export_facts(record.facts),
        "hosts": [{"name": host.name, "facts": _export_facts(host.facts)} for host in record.hosts],
        "missing": list(record.missing),
    }


def _export_facts(facts: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"title": title, "text": text} for title, text in facts]


def _render_provenance(record: Provenance) -> str:
    lines = ["## Provenance", ""]
    lines += [f"- **{title}**: {text}" for title, text in record.facts]
    for host in record.hosts:
        lines += ["", f"### Host {host.name}", ""]
        lines += [f"- {title}: {text}" for title, text in host.facts]
    if record.missing:
        lines += ["", "### Missing values", ""]
        lines += [f"- {each}" for each in record.missing]
    return "\n".join(lines)
