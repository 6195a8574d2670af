"""Results as Codespeed accepts them at `/result/add/json/`."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Row, build_row
from orchestrator.importers.units import classify_unit

#: Field → statistic.
_FIGURES = {
    "result_value": "",
    "std_dev": "sd",
    "min": "min",
    "max": "max",
    "q1": "q1",
    "q3": "q3",
}
#: How a client sends a field without a value, as JSON or as a form.
_MISSING = ("", "None")
#: Texts of a form.
_DIRECTIONS: dict[str, Better] = {
    "True": "lower", "true": "lower", "1": "lower",
    "False": "higher", "false": "higher", "0": "higher",
}  # fmt: skip


def read(content: bytes) -> Iterator[Row]:
    """Yield each result with its spread, minimum and maximum if they are given.

    The suite is the project; executable, benchmark and branch are the case. As in Codespeed, a
    result without a unit is in seconds, and less is better unless the result says otherwise.
    """
    whole = parse_document(content)
    results = whole.items() if isinstance(whole.value, list) else iter([whole])
    for result in results:
        yield from _iterate_rows(result)


def _iterate_rows(result: Node) -> Iterator[Row]:
    unit = _read_text(result, "units") or "seconds"
    branch = _read_text(result, "branch") or "default"
    base: dict[str, Any] = {
        "suite": result["project"].text(),
        "environment": result["environment"].text(),
        "parameters": {
            "executable": result["executable"].text(),
            "benchmark": result["benchmark"].text(),
            "branch": branch,
        },
        "commit": result["commitid"].text(),
        "branch": branch,
        "better": _parse_better(result),
        "committed_at": _read_instant(result, "revision_date"),
    }
    base["measured_at"] = _read_instant(result, "result_date") or base["committed_at"]
    result["result_value"].number()
    for name, statistic in _FIGURES.items():
        figure = result.get(name)
        if figure is not None and figure.value not in _MISSING:
            yield build_row(classify_unit(unit), figure.figure(), unit, **base, statistic=statistic)


def _read_text(result: Node, name: str) -> str:
    node = result.get(name)
    return "" if node is None else node.text()


def _read_instant(result: Node, name: str) -> datetime | None:
    node = result.get(name)
    return None if node is None or node.value in _MISSING else node.instant()


def _parse_better(result: Node) -> Better:
    less = result.get("lessisbetter")
    if less is None:
        return "lower"
    if isinstance(less.value, bool):
        return "lower" if less.value else "higher"
    if not isinstance(less.value, str) or less.value not in _DIRECTIONS:
        raise less.fault("expected true or false")
    return _DIRECTIONS[less.value]
