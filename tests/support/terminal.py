"""A real terminal of a given width, for tests of output."""

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
    """Programs write to `stream`; `read` closes it and returns everything that was written."""

    stream: TextIO
    screen: int

    def read(self) -> str:
        self.stream.close()
        written = b""
        # Linux reports the end of a closed terminal as an error.
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
