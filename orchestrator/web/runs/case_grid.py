"""The grid of check boxes for the selection of cases."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.choice import MAX_LENGTH, choose
from orchestrator.benchmarks.grid import (
    Axis,
    Cell,
    Grid,
    GridSelection,
    build_expression,
    build_grid,
    find_picked,
    list_cells,
    toggle_cells,
)
from orchestrator.benchmarks.selectors import StoredSpec, get_stored_spec, load_latest_definition
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.ids import hash_value
from orchestrator.web.refs import load_chosen_benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`value` is sent by the form. Without a value the cell has no case."""

    value: str
    label: str
    checked: bool = False
    unsupported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row, a column or an axis: `state` is whether all, some or none of it is chosen."""

    toggle: str
    label: str
    state: str
    boxes: tuple[Box, ...] = ()


class CaseChoice:
    """The cases of a benchmark's latest definition, and which of them are chosen.

    All are chosen, until `take` reads a form or `show` an expression. `is_shown`: the sent form
    shows this choice. `stale`: it shows that of another benchmark or definition.
    """

    def __init__(self, key: str, whole: StoredSpec) -> None:
        self.spec = whole.spec
        self.cases = whole.cases
        self.grid: Grid = build_grid(self.spec, self.cases)
        self.id = hash_value([key, self.grid.id])[:16]
        self.picked = self.grid.everything
        self.is_shown = self.stale = False

    @property
    def offered(self) -> bool:
        """Return whether there is anything to choose."""
        return self.grid.rows is not None or bool(self.grid.others)

    def take(self, data: Any) -> None:
        """Read the sent form; requests without a grid, such as a script's, mean all cases."""
        sent = data.get("grid", "")
        self.is_shown = sent == self.id
        self.stale = self.offered and not self.is_shown and bool(sent)
        if not self.is_shown:
            return
        boxes = set(data.getlist("boxes"))
        every = self.grid.everything
        cells = frozenset(cell for cell in every.cells if _format_cell(cell) in boxes)
        values = {
            name: frozenset(place for place in places if f"{name}.{place}" in boxes)
            for name, places in every.values.items()
        }
        picked = GridSelection(cells=cells, values=values)
        self.picked = toggle_cells(self.grid, picked, data.get("toggle", ""))

    def show(self, expression: str) -> str:
        """Mark the cases of an expression; return the expression if no grid can show it."""
        if not self.offered:
            return expression
        try:
            chosen = choose(self.spec, self.cases, expression)
        except InvalidRequestError:
            return expression
        picked = find_picked(self.grid, self.cases, chosen)
        if picked is None:
            return expression
        self.picked = picked
        return ""

    def expression(self, narrower: str) -> str:
        """Return the choice combined with `narrower`. Raise ValidationError if it is not valid."""
        if self.stale:
            raise forms.ValidationError(
                "The cases of this benchmark have changed. The grid shows "
                "them now, all chosen: check it, then start."
            )
        if not all(self.picked.values.values()) or (self.grid.cells and not self.picked.cells):
            raise forms.ValidationError("Choose at least one case.")
        chosen, narrower = build_expression(self.grid, self.picked), narrower.strip()
        combined = f"({chosen}) and ({narrower})" if chosen and narrower else chosen or narrower
        if len(combined) > MAX_LENGTH:
            raise forms.ValidationError(
                "These cells cannot be selected in one run: select whole rows or columns, or "
                "start two runs."
            )
        return combined

    @property
    def columns(self) -> list[Line]:
        return self._lines("column", self.grid.columns)

    @property
    def rows(self) -> list[Line]:
        return self._lines("row", self.grid.rows)

    @property
    def others(self) -> list[Line]:
        return [self._other(axis) for axis in self.grid.others]

    @property
    def all(self) -> Line:
        something = bool(self.picked.cells) or any(self.picked.values.values())
        whole = self.picked == self.grid.everything
        state = "all" if whole else "some" if something else "none"
        return Line(toggle="all", label="All cases", state=state)

    def _lines(self, kind: str, axis: Axis | None) -> list[Line]:
        return [
            self._line(kind, place, label)
            for place, label in enumerate(axis.labels if axis is not None else ())
        ]

    def _line(self, kind: str, place: int, label: str) -> Line:
        cells = list_cells(self.grid, kind, place)
        boxes = self._boxes(place, label) if kind == "row" else ()
        state = _classify_selection(cells, self.picked.cells)
        return Line(toggle=f"{kind}.{place}", label=label, state=state, boxes=tuple(boxes))

    def _boxes(self, row: int, label: str) -> Iterable[Box]:
        for column, name in enumerate(self.grid.columns.labels if self.grid.columns else ()):
            cell = (row, column)
            yield Box(
                value=_format_cell(cell) if cell in self.grid.cells else "",
                label=f"{label}, {name}",
                checked=cell in self.picked.cells,
                unsupported=cell in self.grid.unsupported,
            )

    def _other(self, axis: Axis) -> Line:
        mine = self.picked.values[axis.name]
        return Line(
            toggle=f"axis.{axis.name}",
            label=axis.name,
            state=_classify_selection(frozenset(range(len(axis.values))), mine),
            boxes=tuple(
                Box(value=f"{axis.name}.{place}", label=text, checked=place in mine)
                for place, text in enumerate(axis.labels)
            ),
        )


def load_case_choice(member: Member, key: str) -> CaseChoice | None:
    """Return the choice for the benchmark that a form names; None if it names no existing one."""
    try:
        benchmark = load_chosen_benchmark(member, key)
        if benchmark is None:
            return None
        return CaseChoice(key, get_stored_spec(load_latest_definition(benchmark)))
    except NotFoundError:
        return None


def _format_cell(cell: Cell) -> str:
    return f"{cell[0]}.{cell[1]}"


def _classify_selection(cells: frozenset[Any], chosen: frozenset[Any]) -> str:
    common = cells & chosen
    return "all" if common == cells else "some" if common else "none"
