"""Read a JSON object with one long array without holding the array in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

CHUNK = 1 << 20
#: The maximum size of one value, so that a broken file is not read to its end.
MAX_VALUE = 1 << 24
_SPACE = " \t\r\n"
_DELIMITERS = frozenset(_SPACE + ",:]}")
_decode = json.JSONDecoder().raw_decode


def read_object(path: Path, array: str, add: Callable[[Any], None]) -> dict[str, Any]:
    """Return the object in the file without its array `array`; `add` is called for each element of
    it.

    ValueError if it is no object, or incomplete.
    """
    members: dict[str, Any] = {}
    with open(path, encoding="utf-8") as file:
        text = _Buffer(file)
        text.expect("{")
        while not text.skip("}"):
            name = text.value()
            text.expect(":")
            if name == array and text.skip("["):
                _read_elements(text, add)
            else:
                members[name] = text.value()
            text.skip(",")
    return members


def _read_elements(text: _Buffer, add: Callable[[Any], None]) -> None:
    while not text.skip("]"):
        add(text.value())
        text.skip(",")


class _Buffer:
    """The part of a file that was read and is not decoded yet."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._position = 0

    def skip(self, token: str) -> bool:
        """Return whether `token` is next, and skip it."""
        if self._next_char() != token:
            return False
        self._position += 1
        return True

    def expect(self, token: str) -> None:
        if not self.skip(token):
            raise ValueError(
                f"expected {token!r}, got {self._text[self._position : self._position + 40]!r}"
            )

    def value(self) -> Any:
        while True:
            self._next_char()
            try:
                value, end = _decode(self._text, self._position)
            except ValueError:
                if not self._read_more():
                    raise
                continue
            # A number at the end of the text may continue in the next chunk.
            if self._text[end : end + 1] in _DELIMITERS or not self._read_more():
                self._position = end
                return value

    def _next_char(self) -> str:
        while True:
            while self._position < len(self._text) and self._text[self._position] in _SPACE:
                self._position += 1
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_more():
                raise ValueError("it ends in the middle")

    def _read_more(self) -> bool:
        rest = self._text[self._position :]
        chunk = self._file.read(CHUNK) if len(rest) < MAX_VALUE else ""
        self._text, self._position = rest + chunk, 0
        return bool(chunk)
