"""Files of finished results: JSON lines, or CSV, plain or gzip; a result is what the API takes.

Read line by line, so that a file may be as large as it likes.
"""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic import TypeAdapter, ValidationError

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.own_form import scalar_of
from orchestrator.results.recording.incoming import ResultIn

#: Columns of the CSV beside `case.<axis>` and `metric.<key>`, and whether several stand in a cell.
COLUMNS: Mapping[str, bool] = {
    "project": False, "benchmark": False, "host": False, "profile": False, "commit": False,
    "commit.subject": False, "commit.author": False, "commit.committed_at": False,
    "commit.parents": True, "commit.branch": False, "validity": False, "reasons": True,
    "at": False, "block": False, "id": False, "url": False, "note": False,
}  # fmt: skip
_PREFIXES = ("case.", "metric.")
MOST_BYTES_A_LINE = 1024**2
_RESULT: TypeAdapter[ResultIn] = TypeAdapter(ResultIn)


@dataclass(frozen=True, slots=True)
class Line:
    """One result of a file, or what is wrong with it: exactly one of the two is there."""

    number: int
    result: ResultIn | None = None
    fault: str = ""


def read_results(path: Path) -> Iterator[Line]:
    """The results of a file by their lines; empty ones are skipped.

    `.csv` and `.csv.gz` are CSV, all else is a JSON object a line. InvalidRequestError where the
    file cannot be read, or its heading not be understood.
    """
    try:
        with _opened(path) as file:
            lines = _lines(file)
            yield from _csv(lines) if ".csv" in path.suffixes else _json_lines(lines)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidRequestError(f"{path.name} cannot be read: {error}", field="file") from error


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """A file that is packed well, and has no line, must not fill the memory."""
    number = 0
    while line := file.readline(MOST_BYTES_A_LINE + 1):
        number += 1
        if len(line) > MOST_BYTES_A_LINE:
            raise InvalidRequestError(
                f"line {number}: longer than {MOST_BYTES_A_LINE // 1024} KiB", field="file"
            )
        yield line


def _json_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield Line(number, _RESULT.validate_json(line))
            except ValidationError as error:
                yield Line(number, fault=_told(error))


def _csv(lines: Iterable[bytes]) -> Iterator[Line]:
    try:
        rows = csv.reader((line.decode("utf-8-sig") for line in lines), strict=True)
        heading = [name.strip() for name in next(rows, [])]
        _check(heading)
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield _of_cells(rows.line_num, heading, [cell.strip() for cell in cells])
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"not CSV in UTF-8: {error}", field="file") from error


def _check(heading: list[str]) -> None:
    for name in heading:
        if name not in COLUMNS and not name.startswith(_PREFIXES):
            known = ", ".join([*COLUMNS, "case.<axis>", "metric.<key>"])
            raise InvalidRequestError(f"line 1: there is no column {name!r}; there are {known}")
        if heading.count(name) > 1:
            raise InvalidRequestError(f"line 1: the column {name} stands there twice")


def _of_cells(number: int, heading: list[str], cells: list[str]) -> Line:
    if len(cells) != len(heading):
        return Line(number, fault=f"expected {len(heading)} cells, got {len(cells)}")
    told: dict[str, Any] = {"parameters": {}, "metrics": {}}
    try:
        for name, text in zip(heading, cells, strict=True):
            if text:
                _put(told, name, text)
        return Line(number, _RESULT.validate_python(told))
    except ValidationError as error:
        return Line(number, fault=_told(error))
    except ValueError:
        return Line(number, fault=f"{name}: expected a number, got {text[:60]!r}")


def _put(told: dict[str, Any], name: str, text: str) -> None:
    """A cell at its place in the result; ValueError for a metric that is no number."""
    first, _, rest = name.partition(".")
    if first == "metric":
        told["metrics"][rest] = float(text)
    elif first == "case":
        told["parameters"][rest] = scalar_of(text)
    elif name == "commit.parents":
        told.setdefault("commit_facts", {})["parents"] = text.split()
    elif first == "commit" and rest:
        told.setdefault("commit_facts", {})[rest] = text
    else:
        told[name] = [part.strip() for part in text.split(";")] if COLUMNS[name] else text


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    words = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {words}" if where else words
