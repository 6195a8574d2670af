"""Read a JSON document, with the path of each value for error messages."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.rows import Figure

#: Values that mean unknown instead of a number.
_NOT_FINITE = {"nan": "NaN", "inf": "inf", "-inf": "-inf"}


class FileFaultError(InvalidRequestError):
    """The file does not follow its format; `field` and the message say where."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem, field=where or None)


class Node:
    """A value of a JSON document and the path to it."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def __getitem__(self, name: str) -> "Node":
        node = self.get(name)
        if node is None:
            raise FileFaultError(self._under(name), "this field is missing")
        return node

    def get(self, name: str) -> "Node | None":
        """Return the field of that name; None if it is missing or null."""
        value = self._mapping().get(name)
        return None if value is None else Node(value, self._under(name))

    def fields(self) -> Iterator[tuple[str, "Node"]]:
        """Yield name and value of each field, including null."""
        for name, value in self._mapping().items():
            yield name, Node(value, self._under(name))

    def items(self) -> Iterator["Node"]:
        """Yield the values of a list."""
        if not isinstance(self.value, list):
            raise self.fault("expected a list")
        for place, value in enumerate(self.value):
            yield Node(value, f"{self.path}[{place}]")

    def text(self) -> str:
        """Return text; a number is returned as it is written."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise self.fault("expected a text")
        return str(self.value)

    def number(self) -> float:
        value, _ = self.figure()
        if value is None:
            raise self.fault("expected a number")
        return value

    def figure(self, *sentinels: float) -> Figure:
        """Return a number, or unknown for null, a value that is not finite, or a sentinel."""
        value = self.value
        if isinstance(value, str):
            value = _number(value)
        if value is None and self.value is None:
            return None, "null"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault("expected a number")
        try:
            value = float(value) if value not in sentinels else value
        except OverflowError as error:
            raise self.fault("expected a number that can be stored") from error
        if not math.isfinite(value):
            return None, _NOT_FINITE[str(float(value))]
        return (None, str(self.value)) if value in sentinels else (float(value), "")

    def from_ms(self) -> datetime:
        """Return an instant from milliseconds since 1970."""
        try:
            return datetime.fromtimestamp(self.number() / 1000, UTC)
        except (OverflowError, OSError, ValueError) as error:
            raise self.fault("expected milliseconds since 1970") from error

    def instant(self) -> datetime:
        """Return an instant from ISO 8601; without a time zone it is UTC."""
        instant = parse_instant(self.text())
        if instant is None:
            raise self.fault("expected a date and time such as 2026-01-31T12:00:00Z")
        return instant

    def fault(self, problem: str) -> FileFaultError:
        """Return the error for this value."""
        shown = json.dumps(self.value, ensure_ascii=False, default=str)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
        return FileFaultError(self.path, f"{problem}, got {shown}")

    def _mapping(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.fault("expected an object")
        return self.value

    def _under(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def parse_document(content: bytes) -> Node:
    """Return the JSON document in a file."""
    try:
        return Node(json.loads(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise FileFaultError(f"byte {error.start}", "expected text in UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileFaultError(where, f"not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise FileFaultError(
            "", "not JSON that can be read: too deep, or a number too long"
        ) from error


def parse_instant(text: str) -> datetime | None:
    """Return an aware instant; None if the text is none. Without a time zone it is UTC."""
    try:
        instant = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # In UTC, the first and the last hours of all years may be outside of them.
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
