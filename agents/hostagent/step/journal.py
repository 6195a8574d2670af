"""The journal of a step: one JSON object per line, append only."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any, Optional

from ..errors import AgentError
from ..redaction import Redactor


class Journal:
    """Writes events, without the values of secrets; each is on the disk when `append` returns."""

    def __init__(self, path: Path, redactor: Optional[Redactor] = None) -> None:
        self._redactor = redactor or Redactor()
        cut_partial_line(path)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, event: str, **fields: Any) -> None:
        """Append one event; OSError if it cannot be stored, and then nothing of it is written."""
        record = {"t": time.time(), "event": event, **self._redactor.redact_json(fields)}
        line = json.dumps(record).encode() + b"\n"
        before = os.fstat(self._fd).st_size
        if os.write(self._fd, line) < len(line):  # the next event must start on a new line
            os.ftruncate(self._fd, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def read_from(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Return events at or after byte `offset`, and the offset after the last complete line.

    A line without its newline is left for the next call. A file that is missing or shorter than
    `offset` gives no events and the same offset. AgentError for a line that is no event: another
    program must have written it.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    complete = data[: data.rfind(b"\n") + 1]
    return [_parse_event(line) for line in complete.splitlines()], offset + len(complete)


def _parse_event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"the journal of the step is damaged: {line[:80]!r}") from error
    if not isinstance(event, dict):
        raise AgentError(f"the journal of the step is damaged: {line[:80]!r}")
    return event


def cut_partial_line(path: Path) -> None:
    """Remove the incomplete last line of a supervisor that was killed while it wrote."""
    try:
        with open(path, "r+b") as file:
            data = file.read()
            file.truncate(data.rfind(b"\n") + 1)
    except FileNotFoundError:
        return
