"""Pitwall's own format for results, as CSV and as JSON; documented in docs/importing.md."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.importers.document import FileFaultError, Node, parse_document, parse_instant
from orchestrator.importers.rows import Figure, Row, Scalar, build_row
from orchestrator.loadtools.metrics import find_metric

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
    lines = csv.reader(io.StringIO(_decode_text(content), newline=""), strict=True)
    try:
        heading = [name.strip() for name in next(lines, [])]
        _check(heading)
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield _parse_line(heading, cells, f"line {lines.line_num}")
    except csv.Error as error:
        raise FileFaultError(f"line {lines.line_num}", f"not CSV: {error}") from error


def read_json(content: bytes) -> Iterator[Row]:
    """Yield the rows of `{"version": 1, "results": [{…}]}`."""
    whole = parse_document(content)
    if whole["version"].value != 1:
        raise whole["version"].fault("expected version 1")
    for result in whole["results"].items():
        yield _parse_object(result)


def _decode_text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFaultError(f"byte {error.start}", "expected text in UTF-8") from error


def _check(heading: list[str]) -> None:
    for needed in ("metric", "value"):
        if needed not in heading:
            raise FileFaultError("line 1", f"the column {needed} is missing")
    occurrences = Counter(heading)
    for name in heading:
        if name not in COLUMNS and not (name.startswith(CASE) and name != CASE):
            known = ", ".join(COLUMNS)
            raise FileFaultError(
                "line 1", f"the column {name!r} is unknown; known are {known} and case.<axis>"
            )
        if occurrences[name] > 1:
            raise FileFaultError("line 1", f"the column {name} occurs twice")


def _parse_line(heading: list[str], cells: list[str], where: str) -> Row:
    if len(cells) != len(heading):
        raise FileFaultError(where, f"expected {len(heading)} cells, got {len(cells)}")
    fields = dict(zip(heading, (cell.strip() for cell in cells), strict=True))
    parameters = {
        name.removeprefix(CASE): parse_scalar(text)
        for name, text in fields.items()
        if name.startswith(CASE) and text
    }
    return _parse_row(fields, parameters, _parse_figure(fields["value"], where), where)


def _parse_object(result: Node) -> Row:
    fields: dict[str, str] = {}
    parameters: dict[str, Scalar] = {}
    for name, node in result.fields():
        if name == "parameters":
            parameters = {axis: _read_scalar(value) for axis, value in node.fields()}
        elif name not in COLUMNS:
            known = ", ".join((*COLUMNS, "parameters"))
            raise FileFaultError(node.path, f"this field is unknown; known are {known}")
        elif name != "value" and node.value is not None:
            fields[name] = node.text()
    value = result.value.get("value")
    figure = (
        _parse_figure(value, f"{result.path}.value")
        if isinstance(value, str)
        else Node(value, f"{result.path}.value").figure()
    )
    return _parse_row(fields, parameters, figure, result.path)


def _parse_row(
    fields: Mapping[str, str], parameters: dict[str, Scalar], figure: Figure, where: str
) -> Row:
    metric = fields.get("metric", "")
    if not metric:
        raise FileFaultError(_locate(where, "metric"), "this field is missing")
    more: dict[str, Any] = {
        "suite": fields.get("suite", ""),
        "environment": fields.get("profile", ""),
        "parameters": parameters,
        "statistic": fields.get("statistic", ""),
        "commit": fields.get("commit", ""),
        "better": _parse_better(fields.get("better", ""), where),
        "measured_at": _parse_date(fields.get("measured_at", ""), where),
    }
    known = _drop_impossible(metric, _with_sentinel(figure, fields.get("sentinel", ""), where))
    try:
        return build_row(metric, known, fields.get("unit", ""), **more)
    except ValueError as error:
        raise FileFaultError(_locate(where, "unit"), f"{metric}: {error}") from error


def _with_sentinel(figure: Figure, sentinel: str, where: str) -> Figure:
    if sentinel and figure[0] is not None:
        problem = "it replaces the value: give only one of the two"
        raise FileFaultError(_locate(where, "sentinel"), problem)
    return (None, sentinel) if sentinel else figure


def _drop_impossible(metric: str, figure: Figure) -> Figure:
    """No metric of ours is ever negative: such a number means unknown."""
    value, _ = figure
    if value is None or value >= 0 or find_metric(metric) is None:
        return figure
    return None, f"{value:g}"


def _parse_figure(text: str, where: str) -> Figure:
    if text.lower() in UNKNOWN:
        return None, text
    try:
        return Node(float(text), _locate(where, "value")).figure()
    except ValueError as error:
        problem = f"expected a number or one of the words for unknown, got {text!r}"
        raise FileFaultError(_locate(where, "value"), problem) from error


def _parse_better(text: str, where: str) -> str:
    if text not in ("", "higher", "lower"):
        raise FileFaultError(_locate(where, "better"), f"expected higher or lower, got {text!r}")
    return text


def _parse_date(text: str, where: str) -> Any:
    instant = parse_instant(text) if text else None
    if text and instant is None:
        problem = f"expected a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got {text!r}"
        raise FileFaultError(_locate(where, "measured_at"), problem)
    return instant


def parse_scalar(text: str) -> Scalar:
    """Return a cell as the value of an axis: `true`, `12` and `0.5` are no texts, `3.10` is one.

    Text is a number only if the number is written in exactly this way, so that versions stay
    intact.
    """
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) and repr(float(text)) == text else text


def _read_scalar(node: Node) -> Scalar:
    if not isinstance(node.value, str | int | float | bool):
        raise node.fault("expected a text, a number or a boolean")
    return node.value


def _locate(where: str, name: str) -> str:
    return f"{where}, {name}" if where.startswith("line ") else f"{where}.{name}"
