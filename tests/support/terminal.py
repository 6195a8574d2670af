"""A real terminal of some width, for what is drawn on one."""

import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """`stream` is what a program writes to; `read` ends it and tells all that was written."""

    stream: TextIO
    screen: int

    def read(self) -> str:
        self.stream.close()
        written = b""
        # Linux tells the end of a terminal that nobody holds any more as an error.
        with contextlib.suppress(OSError):
            while more := os.read(self.screen, 4096):
                written += more
        return written.decode()


@contextlib.contextmanager
def a_terminal(*, columns: int) -> Iterator[Terminal]:
    screen, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        with os.fdopen(program, "w") as stream:
            yield Terminal(stream=stream, screen=screen)
    finally:
        os.close(screen)
