"""Progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Optional, TextIO

from .terminal import clean_text

WIDTH = 24


class Progress:
    """Shows progress; without a terminal it writes a line only if the text has changed."""

    def __init__(self, stream: Optional[TextIO] = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.live = self._stream.isatty()
        self._quiet = quiet
        self._last = ""

    def show(self, done: int, total: int, text: str) -> None:
        if self._quiet:
            return
        text = clean_text(text)
        if self.live:
            self._draw(f"{draw_bar(done, total)} {done}/{total}  {text}")
        elif text != self._last:
            self._stream.write(f"pitwall: {text}\n")
            self._stream.flush()
        self._last = text

    def print_line(self, text: str) -> None:
        """Write a separate line that stays."""
        if not self._quiet:
            self.print_result(text)

    def print_result(self, text: str) -> None:
        """Write a line that is no progress, so that `--quiet` does not hide it."""
        self.end()
        self._stream.write(f"pitwall: {clean_text(text)}\n")
        self._stream.flush()

    def end(self) -> None:
        """Make later output start on a new line."""
        if self.live and self._last and not self._quiet:
            self._stream.write("\n")
        self._last = ""

    def _draw(self, line: str) -> None:
        room = count_columns(self._stream) - 1
        self._stream.write("\r" + line[:room].ljust(room))
        self._stream.flush()


def draw_bar(done: int, total: int) -> str:
    """Return such as `[######..................]`."""
    full = round(WIDTH * min(done, total) / total) if total else 0
    return "[" + "#" * full + "." * (WIDTH - full) + "]"


def count_columns(stream: TextIO) -> int:
    """Return the width of the terminal behind `stream`, or 80 if it is not a terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return 80
