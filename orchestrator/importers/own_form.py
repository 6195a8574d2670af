"""Pitwall's own format for results, as CSV and as JSON; documented in docs/importing.md."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.importers.document import FileFaultError, Node, document, instant_of
from orchestrator.importers.rows import Figure, Row, Scalar, row
from orchestrator.loadtools.metrics import metric_for

#: Columns of the CSV other than `case.<axis>`, and fields of a result in the JSON other than
#: `parameters`.
COLUMNS = (
    "suite", "profile", "metric", "unit", "better", "statistic", "value", "sentinel", "measured_at",
    "commit",
)  # fmt: skip
CASE = "case."
#: Words for an unknown value.
UNKNOWN = frozenset({"", "-", "–", "n/a", "na", "nan", "null", "none", "unknown", "?"})
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d+")


def read_csv(content: bytes) -> Iterator[Row]:
    """Yield the rows of a CSV with a heading; an error names line and column."""
    lines = csv.reader(io.StringIO(_text(content), newline=""), strict=True)
    try:
        heading = [name.strip() for name in next(lines, [])]
        _check(heading)
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield _row_of_line(heading, cells, f"line {lines.line_num}")
    except csv.Error as error:
        raise FileFaultError(f"line {lines.line_num}", f"not CSV: {error}") from error


def read_json(content: bytes) -> Iterator[Row]:
    """Yield the rows of `{"version": 1, "results": [{…}]}`."""
    whole = document(content)
    if whole["version"].value != 1:
        raise whole["version"].fault("expected version 1")
    for result in whole["results"].items():
        yield _row_of(result)


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFaultError(f"byte {error.start}", "expected text in UTF-8") from error


def _check(heading: list[str]) -> None:
    for needed in ("metric", "value"):
        if needed not in heading:
            raise FileFaultError("line 1", f"the column {needed} is missing")
    for name in heading:
        if name not in COLUMNS and not (name.startswith(CASE) and name != CASE):
            known = ", ".join(COLUMNS)
            raise FileFaultError(
                "line 1", f"the column {name!r} is unknown; known are {known} and case.<axis>"
            )
        if heading.count(name) > 1:
            raise FileFaultError("line 1", f"the column {name} occurs twice")


def _row_of_line(heading: list[str], cells: list[str], where: str) -> Row:
    if len(cells) != len(heading):
        raise FileFaultError(where, f"expected {len(heading)} cells, got {len(cells)}")
    told = dict(zip(heading, (cell.strip() for cell in cells), strict=True))
    parameters = {
        name.removeprefix(CASE): scalar_of(text)
        for name, text in told.items()
        if name.startswith(CASE) and text
    }
    return _row(told, parameters, _figure(told["value"], where), where)


def _row_of(result: Node) -> Row:
    told: dict[str, str] = {}
    parameters: dict[str, Scalar] = {}
    for name, node in result.fields():
        if name == "parameters":
            parameters = {axis: _scalar(value) for axis, value in node.fields()}
        elif name not in COLUMNS:
            known = ", ".join((*COLUMNS, "parameters"))
            raise FileFaultError(node.path, f"this field is unknown; known are {known}")
        elif name != "value" and node.value is not None:
            told[name] = node.text()
    value = result.value.get("value")
    figure = (
        _figure(value, f"{result.path}.value")
        if isinstance(value, str)
        else Node(value, f"{result.path}.value").figure()
    )
    return _row(told, parameters, figure, result.path)


def _row(told: Mapping[str, str], parameters: dict[str, Scalar], figure: Figure, where: str) -> Row:
    metric = told.get("metric", "")
    if not metric:
        raise FileFaultError(_at(where, "metric"), "this field is missing")
    more: dict[str, Any] = {
        "suite": told.get("suite", ""),
        "environment": told.get("profile", ""),
        "parameters": parameters,
        "statistic": told.get("statistic", ""),
        "commit": told.get("commit", ""),
        "better": _better(told.get("better", ""), where),
        "measured_at": _instant(told.get("measured_at", ""), where),
    }
    known = _possible(metric, _with_sentinel(figure, told.get("sentinel", ""), where))
    try:
        return row(metric, known, told.get("unit", ""), **more)
    except ValueError as error:
        raise FileFaultError(_at(where, "unit"), f"{metric}: {error}") from error


def _with_sentinel(figure: Figure, sentinel: str, where: str) -> Figure:
    if sentinel and figure[0] is not None:
        problem = "it replaces the value: give only one of the two"
        raise FileFaultError(_at(where, "sentinel"), problem)
    return (None, sentinel) if sentinel else figure


def _possible(metric: str, figure: Figure) -> Figure:
    """No metric of ours is ever negative: such a number means unknown."""
    value, _ = figure
    if value is None or value >= 0 or metric_for(metric) is None:
        return figure
    return None, f"{value:g}"


def _figure(text: str, where: str) -> Figure:
    if text.lower() in UNKNOWN:
        return None, text
    try:
        return Node(float(text), _at(where, "value")).figure()
    except ValueError as error:
        problem = f"expected a number or one of the words for unknown, got {text!r}"
        raise FileFaultError(_at(where, "value"), problem) from error


def _better(text: str, where: str) -> str:
    if text not in ("", "higher", "lower"):
        raise FileFaultError(_at(where, "better"), f"expected higher or lower, got {text!r}")
    return text


def _instant(text: str, where: str) -> Any:
    found = instant_of(text) if text else None
    if text and found is None:
        problem = f"expected a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got {text!r}"
        raise FileFaultError(_at(where, "measured_at"), problem)
    return found


def scalar_of(text: str) -> Scalar:
    """Return a cell as the value of an axis: `true`, `12` and `0.5` are no texts, `3.10` is one.

    Text is a number only if the number is written in exactly this way, so that versions stay
    intact.
    """
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) and repr(float(text)) == text else text


def _scalar(node: Node) -> Scalar:
    if not isinstance(node.value, str | int | float | bool):
        raise node.fault("expected a text, a number or a boolean")
    return node.value


def _at(where: str, name: str) -> str:
    return f"{where}, {name}" if where.startswith("line ") else f"{where}.{name}"
