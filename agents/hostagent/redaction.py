"""Replace the values of secrets in texts, files and streams.

A value is found as it is, as JSON writes it, and line by line if it has several lines. Other
encodings of it are not found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .files import write_bytes, write_json
from .protocol import SHORTEST_SECRET

MASK = "***"
#: Texts of the agent that may quote a part of a response.
_EXCERPTS = frozenset({"message", "problem", "reason", "volatile_problem"})

_Range = tuple[int, int]


class Redactor:
    """Replaces each of the values by MASK; without values it changes nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = tuple(values)
        self.patterns = tuple({form for value in self._values for form in _list_forms(value)})

    @property
    def is_empty(self) -> bool:
        return not self.patterns

    def redact_bytes(self, data: bytes) -> bytes:
        stream = RedactedStream(self.patterns)
        return stream.feed(data) + stream.end()

    def redact_text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return self.redact_bytes(data).decode("utf-8", "surrogatepass")

    def redact_excerpt(self, text: str) -> str:
        """Also replace each part of a value of this length or more: an excerpt may cut it."""
        ranges = [
            (start, start + SHORTEST_SECRET)
            for start in range(len(text) - SHORTEST_SECRET + 1)
            if any(text[start : start + SHORTEST_SECRET] in value for value in self._values)
        ]
        parts, done = [], 0
        for start, end in _merge_ranges(ranges):
            parts += [text[done:start], MASK]
            done = end
        return self.redact_text("".join([*parts, text[done:]]))

    def redact_json(self, value: Any, key: str = "") -> Any:
        """Return a JSON value with all its texts redacted; `key` is its name in an object."""
        if self.is_empty:
            return value
        if isinstance(value, str):
            return self.redact_excerpt(value) if key in _EXCERPTS else self.redact_text(value)
        if isinstance(value, dict):
            return {
                self.redact_text(name): self.redact_json(part, name) for name, part in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.redact_json(part, key) for part in value]
        return value

    def redact_file(self, path: Path) -> None:
        """Redact a file, as JSON if it is JSON; a missing file stays missing."""
        if self.is_empty or not path.exists():
            return
        data = path.read_bytes()
        if not any(pattern in data for pattern in self.patterns):
            return
        try:
            write_json(path, self.redact_json(json.loads(data)))
        except (ValueError, RecursionError):
            write_bytes(path, self.redact_bytes(data))


class RedactedStream:
    """Redacts data that arrives in pieces; a value may be split over any of them."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        self._patterns = patterns
        self._held = b""
        #: So many of the held bytes belong to a value that was replaced already.
        self._replaced = 0

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on; the possible begin of a value is held."""
        data = self._held + data
        return self._take(data, _find_held(data, self._patterns))

    def end(self) -> bytes:
        """Return the rest at the end of the data."""
        return self._take(self._held, len(self._held))

    def _take(self, data: bytes, until: int) -> bytes:
        """Return the redacted data before `until`, and hold the rest."""
        continued = [(0, self._replaced)] if self._replaced else []
        parts, done = [], self._replaced if not until else 0
        for start, end in _merge_ranges([*continued, *_find_ranges(data, self._patterns)]):
            if start >= until:
                break
            parts.append(data[done:start])
            if start or not continued:
                parts.append(MASK.encode())
            done = end
        parts.append(data[done:until])
        self._held, self._replaced = data[until:], max(0, done - until)
        return b"".join(parts)


def _list_forms(value: str) -> set[bytes]:
    lines = [line.strip() for line in value.splitlines()]
    texts = [value, *(line for line in lines if len(line) >= SHORTEST_SECRET)]
    forms = {
        *texts,
        *(json.dumps(text)[1:-1] for text in texts),
        *(json.dumps(text, ensure_ascii=False)[1:-1] for text in texts),
    }
    return {form.encode("utf-8", "surrogatepass") for form in forms if form}


def _find_ranges(data: bytes, patterns: Iterable[bytes]) -> list[_Range]:
    """Return where the patterns occur, also where they overlap."""
    ranges = []
    for pattern in patterns:
        start = data.find(pattern)
        while start >= 0:
            ranges.append((start, start + len(pattern)))
            start = data.find(pattern, start + 1)
    return ranges


def _merge_ranges(ranges: Iterable[_Range]) -> list[_Range]:
    """Return the ranges in order; those that overlap are one."""
    merged: list[_Range] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _find_held(data: bytes, patterns: Iterable[bytes]) -> int:
    """Return where the longest end of the data begins that is the begin of a pattern."""
    held = len(data)
    for pattern in patterns:
        start = data.find(pattern[:1], max(0, len(data) - len(pattern) + 1), held)
        while start >= 0:
            if pattern.startswith(data[start:]):
                held = start
                break
            start = data.find(pattern[:1], start + 1, held)
    return held
