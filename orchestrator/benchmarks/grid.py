"""The cases of a definition as a grid, and a selection of them as an expression. No Django.

The two axes with most values are the rows and columns. The values of other axes are selected for
the whole grid. The selection is stored as an expression (benchmarks/choice.py): runs and schedules
store it, and it stays meaningful under a later version of the definition.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.matrix import CaseSpec, find_unsupported_reason
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.ids import hash_value

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis with more than one value, in the order of the definition."""

    name: str
    values: tuple[Scalar, ...]

    @property
    def labels(self) -> list[str]:
        return [format_axis_value(value) for value in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells to select from. `rows` and `columns` are None if fewer than two axes have a choice.

    `cells` contains only cells with cases; `unsupported` are those that no host can measure. `id`
    changes with the axes and their values, because places of one grid mean nothing in another.
    """

    id: str
    rows: Axis | None
    columns: Axis | None
    others: tuple[Axis, ...]
    cells: frozenset[Cell]
    unsupported: frozenset[Cell]
    case_count: int

    @property
    def everything(self) -> "GridSelection":
        return GridSelection(
            cells=self.cells,
            values={axis.name: frozenset(range(len(axis.values))) for axis in self.others},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSelection:
    """Places of the selected cells, and of the selected values of each other axis by its name."""

    cells: frozenset[Cell]
    values: Mapping[str, frozenset[int]] = field(default_factory=dict)


def build_grid(spec: Spec, cases: Sequence[CaseSpec]) -> Grid:
    """Return the grid of a definition; `cases` are all its cases."""
    axes = [Axis(name=name, values=tuple(spec.list_values(name))) for name in spec.matrix]
    choices = [axis for axis in axes if len(axis.values) > 1]
    largest = sorted(choices, key=lambda axis: -len(axis.values))[:2]
    rows, columns = largest if len(largest) == 2 else (None, None)
    possible: dict[Cell, bool] = {}
    for case in cases if rows and columns else ():
        cell = _locate_cell(case, rows, columns)
        lost = bool(find_unsupported_reason(spec, case.parameters))
        possible[cell] = possible.get(cell, True) and lost
    return Grid(
        id=hash_value([[axis.name, list(axis.values)] for axis in axes])[:16],
        rows=rows,
        columns=columns,
        others=tuple(axis for axis in choices if axis not in (rows, columns)),
        cells=frozenset(possible),
        unsupported=frozenset(cell for cell, lost in possible.items() if lost),
        case_count=len(cases),
    )


def find_picked(
    grid: Grid, cases: Sequence[CaseSpec], chosen: Sequence[CaseSpec]
) -> GridSelection | None:
    """Return the selection that contains exactly the `chosen` cases; None if there is none."""
    picked = GridSelection(
        cells=frozenset(
            _locate_cell(case, grid.rows, grid.columns) for case in chosen if grid.rows is not None
        ),
        values={
            axis.name: frozenset(axis.values.index(case.parameters[axis.name]) for case in chosen)
            for axis in grid.others
        },
    )
    wanted = {case.key for case in chosen}
    keys = {case.key for case in cases if _includes_case(grid, picked, case)}
    return picked if keys == wanted else None


def build_expression(grid: Grid, picked: GridSelection) -> str:
    """Return an expression for the selection; empty for all cases. Each axis needs a value."""
    parts = [
        _format_values(axis, picked.values[axis.name])
        for axis in grid.others
        if len(picked.values[axis.name]) < len(axis.values)
    ]
    if grid.rows is not None and grid.columns is not None and picked.cells < grid.cells:
        turned = frozenset((column, row) for row, column in grid.cells)
        turned_picks = frozenset((column, row) for row, column in picked.cells)
        ways = (
            _format_cells(grid.rows, grid.columns, grid.cells, picked.cells),
            _format_cells(grid.columns, grid.rows, turned, turned_picks),
        )
        parts.append(min(ways, key=len))
    return " and ".join(f"({part})" if " or " in part and parts[1:] else part for part in parts)


def _format_cells(
    rows: Axis, columns: Axis, cells: frozenset[Cell], picked: frozenset[Cell]
) -> str:
    """Combine rows with the same selected columns; cells without cases may complete a row."""
    everywhere = frozenset(range(len(columns.values)))
    groups: dict[frozenset[int], list[int]] = defaultdict(list)
    for row in range(len(rows.values)):
        there = {column for at, column in cells if at == row}
        mine = frozenset(column for at, column in picked if at == row)
        if mine:
            groups[everywhere if mine == there else mine].append(row)
    return " or ".join(
        " and ".join(
            part
            for part in (
                _format_values(rows, places) if len(places) < len(rows.values) else "",
                _format_values(columns, mine) if mine != everywhere else "",
            )
            if part
        )
        for mine, places in groups.items()
    )


def _format_values(axis: Axis, places: Sequence[int] | frozenset[int]) -> str:
    shown = [repr(axis.values[place]) for place in sorted(places)]
    return (
        f"{axis.name} == {shown[0]}" if len(shown) == 1 else f"{axis.name} in ({', '.join(shown)})"
    )


def _locate_cell(case: CaseSpec, rows: Axis | None, columns: Axis | None) -> Cell:
    assert rows is not None
    assert columns is not None
    return (
        rows.values.index(case.parameters[rows.name]),
        columns.values.index(case.parameters[columns.name]),
    )


def _includes_case(grid: Grid, picked: GridSelection, case: CaseSpec) -> bool:
    within = all(
        axis.values.index(case.parameters[axis.name]) in picked.values[axis.name]
        for axis in grid.others
    )
    in_cell = grid.rows is None or _locate_cell(case, grid.rows, grid.columns) in picked.cells
    return within and in_cell


def toggle_cells(grid: Grid, picked: GridSelection, what: str) -> GridSelection:
    """Select all of `what` if a part of it was not selected, else deselect it.

    `what` is `all`, `row.2`, `column.0` or `axis.size`; other values change nothing.
    """
    kind, _, name = what.partition(".")
    if kind == "all":
        empty = GridSelection(
            cells=frozenset(), values={axis.name: frozenset() for axis in grid.others}
        )
        return empty if picked == grid.everything else grid.everything
    if kind == "axis" and name in picked.values:
        every = grid.everything.values[name]
        mine = frozenset() if picked.values[name] == every else every
        return replace(picked, values={**picked.values, name: mine})
    if kind in ("row", "column") and name.isdecimal():
        line = list_cells(grid, kind, int(name))
        cells = picked.cells - line if line <= picked.cells else picked.cells | line
        return replace(picked, cells=cells)
    return picked


def list_cells(grid: Grid, kind: str, place: int) -> frozenset[Cell]:
    """Return the cells of one `row` or `column`."""
    at = 0 if kind == "row" else 1
    return frozenset(cell for cell in grid.cells if cell[at] == place)
