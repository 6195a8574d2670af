"""Requests to stop, as notes that a loop looks at, and a sleep that they cut short."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# `timeout` and make both pass a signal on: what arrives this close together is one request.
SAME_REQUEST_S = 0.3


class StopRequested(Exception):
    """Somebody asked us to end; `signum` is how."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Interrupts:
    """Takes SIGINT, SIGTERM, SIGHUP and SIGCHLD over between `listen` and `unlisten`."""

    def __init__(self) -> None:
        self._requests: list[tuple[float, int]] = []
        self._handlers: dict[int, Any] = {}

    def listen(self) -> None:
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for signum in STOP_SIGNALS:
            # nohup means that a closed terminal is no reason to end.
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue
            self._handlers[signum] = signal.signal(signum, self._note)
        # Without a handler of any kind SIGCHLD would not cut a sleep short.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda signum, frame: None)

    def unlisten(self) -> None:
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._read)
        os.close(self._write)

    def first(self) -> int | None:
        """The signal that first asked us to stop, or None."""
        return self._requests[0][1] if self._requests else None

    def check(self) -> None:
        """Raise StopRequested if somebody asked."""
        if self._requests:
            raise StopRequested(self._requests[0][1])

    def in_a_hurry(self) -> bool:
        """Whether somebody asked twice."""
        return len(self._requests) > 1

    def pause(self, limit_s: float) -> None:
        """Sleep, but wake up for a signal, a dead child's among them."""
        readable, _, _ = select.select([self._read], [], [], limit_s)
        if readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 4096)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._requests or now - self._requests[-1][0] > SAME_REQUEST_S:
            self._requests.append((now, signum))
