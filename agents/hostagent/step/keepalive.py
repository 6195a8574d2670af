"""The files by which orchestrator and supervisor know that the other one goes on.

Each poll touches `keepalive`; the main loop of the supervisor writes `beat`.
"""

from __future__ import annotations

import contextlib
import time
from typing import Optional

from ..errors import Aborted
from ..paths import StepDir

#: The interval at which the beat is written.
BEAT_S = 5.0


class Keepalive:
    """`heartbeat` ends a step if its `keepalive` file stays unchanged for `silence_s`.

    The time of the file is compared only with itself, never with the clock, which may be set while
    the step runs. For the same reason the beat is a reading of the monotonic clock, which all
    processes of the host share.
    """

    def __init__(self, step: StepDir, silence_s: float) -> None:
        self._path = step.keepalive
        self._beat = step.beat
        self._next_beat = 0.0
        self._silence_s = silence_s
        self._seen: Optional[int] = None
        self._since = time.monotonic()

    def heartbeat(self) -> None:
        """Write the beat if it is due. Raise Aborted("silence") without a poll for `silence_s`."""
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            with contextlib.suppress(OSError):  # such as a full disk
                self._beat.write_text(f"{now:.3f}", "ascii")
        touched = self._path.stat().st_mtime_ns if self._path.exists() else None
        if touched != self._seen:
            self._seen = touched
            self._since = time.monotonic()
        elif time.monotonic() - self._since > self._silence_s:
            raise Aborted("silence", "silence")

    def touch(self) -> None:
        self._path.touch()


def read_beat_age_s(step: StepDir) -> Optional[float]:
    """Return the seconds since the last beat; None before the first one."""
    try:
        return max(0.0, time.monotonic() - float(step.beat.read_text("ascii")))
    except (OSError, ValueError):
        return None
