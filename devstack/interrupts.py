"""Requests to stop, stored for a loop to check, and a sleep that they interrupt."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# `timeout` and make both forward a signal: those that arrive this close together are one request.
SAME_REQUEST_S = 0.3


class StopRequested(Exception):
    """The process was asked to end by the signal `signum`."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Interrupts:
    """Handles SIGINT, SIGTERM, SIGHUP and SIGCHLD between `listen` and `unlisten`."""

    def __init__(self) -> None:
        self._requests: list[tuple[float, int]] = []
        self._handlers: dict[int, Any] = {}

    def listen(self) -> None:
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for signum in STOP_SIGNALS:
            # With nohup a closed terminal is no reason to end.
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue
            self._handlers[signum] = signal.signal(signum, self._note)
        # Without a handler SIGCHLD would not interrupt a sleep.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda signum, frame: None)

    def unlisten(self) -> None:
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._read)
        os.close(self._write)

    def first(self) -> int | None:
        """The first signal that asked us to stop, or None."""
        return self._requests[0][1] if self._requests else None

    def check(self) -> None:
        """Raise StopRequested if a stop was requested."""
        if self._requests:
            raise StopRequested(self._requests[0][1])

    def in_a_hurry(self) -> bool:
        """Whether a stop was requested twice."""
        return len(self._requests) > 1

    def pause(self, limit_s: float) -> None:
        """Sleep until a signal arrives, including that of a dead child."""
        readable, _, _ = select.select([self._read], [], [], limit_s)
        if readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 4096)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._requests or now - self._requests[-1][0] > SAME_REQUEST_S:
            self._requests.append((now, signum))
