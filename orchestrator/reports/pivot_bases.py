"""The bases of changes in a pivot: the baseline case, or the case on another host. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.reports.pivot_cells import CellValue, compute_relative, read_cell
from orchestrator.reports.pivot_model import Observation, TableColumn, TableRow
from orchestrator.reports.report_spec import Column, Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """`cases`: by the common part of a case and its baseline case; `places`: by host and the
    rest; `entries`: by contest and value of its axis."""

    axes: Sequence[str]
    entries: Mapping[Hashable, Observation]
    cases: Mapping[Hashable, Observation]
    places: Mapping[Hashable, Observation]


def build_bases(seen: Sequence[Observation], axes: Sequence[str], contest: str | None) -> Bases:
    entries = [each for each in seen if each.contest is not None] if contest else []
    return Bases(
        axes=axes,
        entries={(each.contest, each.get_value(contest or "")): each for each in entries},
        cases={each.rest: each for each in seen if each.baseline},
        places={_place(each, each.get_value("host"), axes): each for each in seen},
    )


def compute_change(
    cell: CellValue, seen: Observation, column: Column, bases: Bases, measure: Measure
) -> CellValue:
    """Return the change of one observation's value against the base of the column."""
    if column.baseline:
        base = bases.entries.get((seen.contest, column.baseline))
        return _compute_against(
            cell, seen, base, column, measure, "this value is not in this report"
        )
    if not column.against:
        base = bases.cases.get(seen.rest)
        return compute_relative(cell, read_cell([base], measure) if base else None, column.decimals)
    base = bases.places.get(_place(seen, column.against, bases.axes))
    missing = f"this case is not on host {column.against} in this report"
    change = _compute_against(cell, seen, base, column, measure, missing)
    # The order of these changes is not that of the values in the blocks.
    return replace(change, cell=replace(change.cell, entry=None))


def _compute_against(
    cell: CellValue,
    seen: Observation,
    base: Observation | None,
    column: Column,
    measure: Measure,
    missing: str,
) -> CellValue:
    cell = replace(cell, cell=replace(cell.cell, baseline=base is seen))
    value = read_cell([base], measure) if base else None
    return compute_relative(cell, value, column.decimals, missing=missing)


def build_pairing_notes(columns: Sequence[TableColumn], rows: Sequence[TableRow]) -> list[str]:
    """Return whether the measured changes and differences of a table are paired; empty without."""
    cells = [
        cell
        for row in rows
        for cell, column in zip(row.cells, columns, strict=True)
        if column.kind != "value" and not (cell.value is None or cell.baseline or cell.published)
    ]
    paired = sum(cell.paired for cell in cells)
    if not cells:
        return []
    if not paired:
        return ["Changes and differences are not paired: the values have no common blocks."]
    if paired == len(cells):
        return ["Changes and differences are paired: they are those within common blocks."]
    return [
        f"{paired} of {len(cells)} changes and differences are paired, by common blocks; the "
        "others are not, and have wider intervals."
    ]


def build_base_notes(columns: Sequence[Column]) -> list[str]:
    hosts = dict.fromkeys(each.against for each in columns if each.against)
    return [
        f"Changes against host {host} compare different machines at different times: the sides "
        "are not paired."
        for host in hosts
    ]


def _place(seen: Observation, host: str, axes: Sequence[str]) -> Hashable:
    return (host, *(seen.get_value(name) for name in (*axes, "commit", "source")))
