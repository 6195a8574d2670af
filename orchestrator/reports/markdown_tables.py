"""Tables in Markdown. Pure."""

from collections.abc import Sequence


def render_line(cells: Sequence[str]) -> str:
    """Return one row; the texts may contain anything, also line breaks and bars."""
    return _join_cells([_escape_cell(text) for text in cells])


def render_rule(texts: int, numbers: int = 0) -> str:
    """Return the line below the headings, of columns of text and then of numbers."""
    return _join_cells([*["---"] * texts, *["--:"] * numbers])


def _join_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
