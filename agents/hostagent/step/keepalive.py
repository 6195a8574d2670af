"""The keepalive of a step: its `keepalive` file, which each poll touches."""

from __future__ import annotations

import time
from typing import Optional

from ..errors import Aborted
from ..paths import StepDir


class Keepalive:
    """`heartbeat` ends a step if its `keepalive` file stays unchanged for `silence_s`.

    The time of the file is compared only with itself, never with the clock, which may be set while
    the step runs.
    """

    def __init__(self, step: StepDir, silence_s: float) -> None:
        self._path = step.keepalive
        self._silence_s = silence_s
        self._seen: Optional[int] = None
        self._since = time.monotonic()

    def heartbeat(self) -> None:
        """Raise Aborted("silence") without a poll for `silence_s`."""
        touched = self._path.stat().st_mtime_ns if self._path.exists() else None
        if touched != self._seen:
            self._seen = touched
            self._since = time.monotonic()
        elif time.monotonic() - self._since > self._silence_s:
            raise Aborted("silence", "silence")

    def touch(self) -> None:
        self._path.touch()
