"""The bases of changes in a pivot: the baseline case, or the case on another host. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.reports.pivot_cells import CellValue, compute_relative, read_cell
from orchestrator.reports.pivot_model import Observation
from orchestrator.reports.report_spec import Column, Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """`cases`: by the common part of a case and its baseline case; `places`: by host and the
    rest."""

    axes: Sequence[str]
    cases: Mapping[Hashable, Observation]
    places: Mapping[Hashable, Observation]


def build_bases(seen: Sequence[Observation], axes: Sequence[str]) -> Bases:
    return Bases(
        axes=axes,
        cases={each.rest: each for each in seen if each.baseline},
        places={_place(each, each.get_value("host"), axes): each for each in seen},
    )


def compute_change(
    cell: CellValue, seen: Observation, column: Column, bases: Bases, measure: Measure
) -> CellValue:
    """Return the change of one observation's value against the base of the column."""
    if not column.against:
        base = bases.cases.get(seen.rest)
        return compute_relative(cell, read_cell([base], measure) if base else None, column.decimals)
    base = bases.places.get(_place(seen, column.against, bases.axes))
    cell = replace(cell, cell=replace(cell.cell, baseline=base is seen))
    return compute_relative(
        cell,
        read_cell([base], measure) if base else None,
        column.decimals,
        missing=f"this case is not on host {column.against} in this report",
    )


def build_base_notes(columns: Sequence[Column]) -> list[str]:
    hosts = dict.fromkeys(each.against for each in columns if each.against)
    return [
        f"Changes against host {host} compare different machines at different times: the sides "
        "are not paired."
        for host in hosts
    ]


def _place(seen: Observation, host: str, axes: Sequence[str]) -> Hashable:
    return (host, *(seen.get_value(name) for name in (*axes, "commit", "source")))
