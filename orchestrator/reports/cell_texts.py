"""The texts of a cell: on pages, in files and in charts. Pure."""

from cli.pitwall.units import format_number
from orchestrator.reports.pivot_model import WORDS, Cell, TableColumn


def format_cell(cell: Cell, column: TableColumn) -> str:
    """Return the value of a cell as text without its interval, or the word for a missing value."""
    if cell.value is None:
        return WORDS[cell.kind]
    if column.kind == "change" and cell.baseline:
        return "baseline"
    text = _number(cell.value, cell)
    sign = "+" if column.kind == "change" and cell.value > 0 else ""
    return f"{sign}{text}{'' if column.unit or cell.states_unit else _format_unit(cell)}"


def format_interval(cell: Cell) -> str:
    """Return `1.90 to 2.10`; empty without an interval."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{_number(cell.low, cell)} to {_number(cell.high, cell)}"


def _number(value: float, cell: Cell) -> str:
    return format_number(value, decimals=cell.decimals)


def _format_unit(cell: Cell) -> str:
    return f" {cell.unit}" if cell.unit else ""
