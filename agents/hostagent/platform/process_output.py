"""The file with the output of a process, without the values of secrets.

With secrets, the process writes into a pipe. A helper process reads it, replaces the values and
writes the file, so that no value is ever on the disk. A thread of the supervisor could not do that:
the supervisor starts processes with fork, which needs a single thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Optional

from ..redaction import RedactedStream, Redactor
from .processes import await_helper, fork_helper

_CHUNK_BYTES = 1 << 16
#: After its end, a process may have left a descendant that still holds the pipe.
_LEFT_S = 1.0


class ProcessOutput:
    """`finish` waits until the file has all that the process wrote."""

    def __init__(self, path: Path, mode: str, redactor: Redactor) -> None:
        """`mode`: "wb" for a new file, "ab" to append."""
        self.path, self._mode, self._redactor = path, mode, redactor
        self._helper: Optional[int] = None

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[Any]]:
        """Yield what the process gets as its output; it has to be started in the block."""
        with open(self.path, self._mode) as file:
            if self._redactor.is_empty:
                yield file
                return
            try:
                with self._start_helper(file) as pipe:
                    yield pipe
            except BaseException:
                self.finish()
                raise

    def finish(self, timeout_s: float = _LEFT_S) -> None:
        """Call it when the process has ended."""
        if self._helper is not None and await_helper(self._helper, timeout_s):
            self._helper = None

    def _start_helper(self, file: IO[Any]) -> IO[Any]:
        """Return the pipe to the helper that writes the file."""
        read_end, write_end = os.pipe()
        try:
            self._helper = fork_helper(
                lambda: self._redact(read_end, file.fileno()), {read_end, file.fileno()}
            )
        finally:
            os.close(read_end)
        return open(write_end, "wb")

    def _redact(self, source: int, target: int) -> None:
        stream = RedactedStream(self._redactor.patterns)
        while data := os.read(source, _CHUNK_BYTES):
            _write_all(target, stream.feed(data))
        _write_all(target, stream.end())


def _write_all(target: int, data: bytes) -> None:
    """Write the data; on a full disk it is lost, as it is without the pipe."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(target, data) :]
