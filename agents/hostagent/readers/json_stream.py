"""A JSON object with one long array, read without holding the array in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

CHUNK = 1 << 20
#: One value beside or in the array; a broken file is not read to its end in the hope for more.
MAX_VALUE = 1 << 24
_SPACE = " \t\r\n"
_BEHIND = frozenset(_SPACE + ",:]}")
_decode = json.JSONDecoder().raw_decode


def read_object(path: Path, array: str, take: Callable[[Any], None]) -> dict[str, Any]:
    """The object in the file at `path` without its array `array`, whose elements `take` gets.

    ValueError where it is no object, or ends early.
    """
    found: dict[str, Any] = {}
    with open(path, encoding="utf-8") as file:
        text = _Text(file)
        text.expect("{")
        while not text.skip("}"):
            name = text.value()
            text.expect(":")
            if name == array and text.skip("["):
                _elements(text, take)
            else:
                found[name] = text.value()
            text.skip(",")
    return found


def _elements(text: _Text, take: Callable[[Any], None]) -> None:
    while not text.skip("]"):
        take(text.value())
        text.skip(",")


class _Text:
    """What was read of a file and not yet decoded."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0

    def skip(self, mark: str) -> bool:
        """Whether `mark` is next; then it is behind us."""
        if self._next() != mark:
            return False
        self._at += 1
        return True

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise ValueError(f"expected {mark!r}, got {self._text[self._at : self._at + 40]!r}")

    def value(self) -> Any:
        while True:
            self._next()
            try:
                value, end = _decode(self._text, self._at)
            except ValueError:
                if not self._more():
                    raise
                continue
            # Without what comes behind a value, a number may go on.
            if self._text[end : end + 1] in _BEHIND or not self._more():
                self._at = end
                return value

    def _next(self) -> str:
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                raise ValueError("it ends in the middle")

    def _more(self) -> bool:
        rest = self._text[self._at :]
        chunk = self._file.read(CHUNK) if len(rest) < MAX_VALUE else ""
        self._text, self._at = rest + chunk, 0
        return bool(chunk)
