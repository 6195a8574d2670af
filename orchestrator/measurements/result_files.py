"""Files of finished results: JSON lines or CSV, plain or gzip; a result is as in the API.

They are read line by line, so memory does not depend on the size of a file. Files from clients have
limits: unpacked bytes, lines (including empty ones) and results.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic import TypeAdapter, ValidationError

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.own_form import parse_scalar
from orchestrator.measurements.incoming import ResultIn

#: CSV columns other than `case.<axis>` and `metric.<key>`, and whether a cell is a list.
COLUMNS: Mapping[str, bool] = {
    "project": False, "benchmark": False, "host": False, "profile": False, "commit": False,
    "commit.subject": False, "commit.author": False, "commit.committed_at": False,
    "commit.parents": True, "commit.branch": False, "validity": False, "reasons": True,
    "at": False, "block": False, "id": False, "url": False, "note": False,
}  # fmt: skip
_PREFIXES = ("case.", "metric.")
#: The limit of a line, and of a CSV row that spans several lines.
MOST_BYTES_A_LINE = 1024**2
_RESULT: TypeAdapter[ResultIn] = TypeAdapter(ResultIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a file; None is no limit. `unpacked` is in bytes."""

    results: int | None = None
    lines: int | None = None
    unpacked: int | None = None


#: For commands that operators run on the server.
ANY_SIZE = Bounds()
#: For files that a request imports directly.
SMALL = Bounds(results=2_000, lines=10_000, unpacked=8 * 1024**2)
UPLOAD = Bounds(results=200_000, lines=500_000, unpacked=512 * 1024**2)


class TooLargeError(InvalidRequestError):
    """A file exceeds a bound of how much is read."""


@dataclass(frozen=True, slots=True)
class Line:
    """One result of a file or its fault: exactly one of the two is set."""

    number: int
    result: ResultIn | None = None
    fault: str = ""


def read_results(path: Path, bounds: Bounds = ANY_SIZE, skip: int = 0) -> Iterator[Line]:
    """Yield the results of a file with their lines; skip empty lines and the first `skip` results.

    Skipped results are not checked. `.csv` and `.csv.gz` are CSV; other files have a JSON object
    per line. Raise InvalidRequestError if the file cannot be read, its header is wrong or it
    exceeds a limit.
    """
    try:
        with _open_result_file(path) as file:
            lines = _Lines(file, bounds)
            results = (
                _iterate_csv_lines(lines) if ".csv" in path.suffixes else _iterate_json_lines(lines)
            )
            for count, line in enumerate(results, start=1):
                if bounds.results is not None and count > bounds.results:
                    raise TooLargeError(
                        f"a file that is sent has at most {bounds.results} results", field="file"
                    )
                if count > skip:
                    yield line()
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidRequestError(f"{path.name} cannot be read: {error}", field="file") from error


def _open_result_file(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


class _Lines:
    """The lines of a file, counted before any is skipped.

    A small packed file may have billions of empty lines, or one line without an end.
    """

    def __init__(self, file: BinaryIO, bounds: Bounds) -> None:
        self._file, self._bounds = file, bounds
        self._bytes = 0
        self.number = 0
        #: Bytes since the start of the current CSV row.
        self.of_row = 0

    def __iter__(self) -> Iterator[bytes]:
        while line := self._file.readline(MOST_BYTES_A_LINE + 1):
            self.number += 1
            self._bytes += len(line)
            self.of_row += len(line)
            self._check(line)
            yield line

    def _check(self, line: bytes) -> None:
        bounds = self._bounds
        if len(line) > MOST_BYTES_A_LINE or self.of_row > 2 * MOST_BYTES_A_LINE:
            raise InvalidRequestError(
                f"line {self.number}: longer than {MOST_BYTES_A_LINE // 1024} KiB", field="file"
            )
        if bounds.lines is not None and self.number > bounds.lines:
            raise TooLargeError(
                f"a file that is sent has at most {bounds.lines} lines, empty ones included",
                field="file",
            )
        if bounds.unpacked is not None and self._bytes > bounds.unpacked:
            raise TooLargeError(
                f"a file that is sent has at most {bounds.unpacked // 1024**2} MiB when it is "
                "unpacked; send it in parts",
                field="file",
            )


def _iterate_json_lines(lines: _Lines) -> Iterator[Callable[[], Line]]:
    for line in lines:
        lines.of_row = 0
        if not line.isspace():
            yield partial(_parse_json_line, lines.number, line)


def _parse_json_line(number: int, line: bytes) -> Line:
    try:
        return Line(number, _RESULT.validate_json(line))
    except ValidationError as error:
        return Line(number, fault=format_error(error))


def _iterate_csv_lines(lines: _Lines) -> Iterator[Callable[[], Line]]:
    try:
        rows = csv.reader((line.decode("utf-8-sig") for line in lines), strict=True)
        heading = [name.strip() for name in next(rows, [])]
        _check(heading)
        for cells in rows:
            lines.of_row = 0
            if any(cell.strip() for cell in cells):
                stripped = [cell.strip() for cell in cells]
                yield partial(_parse_csv_line, rows.line_num, heading, stripped)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"not CSV in UTF-8: {error}", field="file") from error


def _check(heading: list[str]) -> None:
    seen: set[str] = set()
    for name in heading:
        if name not in COLUMNS and not name.startswith(_PREFIXES):
            known = ", ".join([*COLUMNS, "case.<axis>", "metric.<key>"])
            raise InvalidRequestError(f"line 1: there is no column {name!r}; there are {known}")
        if name in seen:
            raise InvalidRequestError(f"line 1: the column {name} occurs twice")
        seen.add(name)


def _parse_csv_line(number: int, heading: list[str], cells: list[str]) -> Line:
    if len(cells) != len(heading):
        return Line(number, fault=f"expected {len(heading)} cells, got {len(cells)}")
    fields: dict[str, Any] = {"parameters": {}, "metrics": {}}
    try:
        for name, text in zip(heading, cells, strict=True):
            if text:
                _put(fields, name, text)
        return Line(number, _RESULT.validate_python(fields))
    except ValidationError as error:
        return Line(number, fault=format_error(error))
    except ValueError:
        return Line(number, fault=f"{name}: expected a number, got {text[:60]!r}")


def _put(fields: dict[str, Any], name: str, text: str) -> None:
    """Put a cell into the result; ValueError for a metric that is not a number."""
    first, _, rest = name.partition(".")
    if first == "metric":
        fields["metrics"][rest] = float(text)
    elif first == "case":
        fields["parameters"][rest] = parse_scalar(text)
    elif name == "commit.parents":
        fields.setdefault("commit_facts", {})["parents"] = text.split()
    elif first == "commit" and rest:
        fields.setdefault("commit_facts", {})[rest] = text
    else:
        fields[name] = [part.strip() for part in text.split(";")] if COLUMNS[name] else text


def format_error(error: ValidationError) -> str:
    """Return the first problem of a result, with the field."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    words = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {words}" if where else words
