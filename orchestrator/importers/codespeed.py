"""Results as Codespeed accepts them at `/result/add/json/`."""

from collections.abc import Iterator
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


def read(content: bytes) -> Iterator[Row]:
    """Yield each result with its spread, minimum and maximum if they are given.

    The suite is the project; executable, benchmark and branch are the case.
    """
    whole = parse_document(content)
    results = whole.items() if isinstance(whole.value, list) else iter([whole])
    for result in results:
        yield from _iterate_rows(result)


def _iterate_rows(result: Node) -> Iterator[Row]:
    unit = _read_text(result, "units")
    base: dict[str, Any] = {
        "suite": result["project"].text(),
        "environment": result["environment"].text(),
        "parameters": {
            "executable": result["executable"].text(),
            "benchmark": result["benchmark"].text(),
            "branch": _read_text(result, "branch") or "default",
        },
        "commit": result["commitid"].text(),
        "better": _parse_better(result),
    }
    moment = result.get("result_date") or result.get("revision_date")
    if moment is not None:
        base["measured_at"] = moment.instant()
    result["result_value"].number()
    for name, statistic in _FIGURES.items():
        figure = result.get(name)
        if figure is not None and figure.value != "":
            yield build_row(classify_unit(unit), figure.figure(), unit, **base, statistic=statistic)


def _read_text(result: Node, name: str) -> str:
    node = result.get(name)
    return "" if node is None else node.text()


def _parse_better(result: Node) -> Better:
    less = result.get("lessisbetter")
    if less is None:
        return ""
    if not isinstance(less.value, bool):
        raise less.fault("expected true or false")
    return "lower" if less.value else "higher"
