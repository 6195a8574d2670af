"""Waiting that ends early: for a child that ended, for SIGTERM, for an orchestrator gone silent."""

from __future__ import annotations

import select
import signal
import socket
import time
from pathlib import Path
from typing import Any, Optional

from .errors import Aborted


class Pulse:
    """Every wait of the supervisor goes through here, so that each can be ended."""

    def __init__(self, contact: Path, silence_s: float) -> None:
        self._contact = contact
        self._silence_s = silence_s
        self._touched: Optional[int] = None
        self._heard = time.monotonic()
        self._stopped = False
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def listen(self) -> None:
        """Install the signal handlers; SIGINT and SIGHUP get back what children should inherit."""
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, _ignore)

    def _stop(self, *_: Any) -> None:
        self._stopped = True

    def check(self) -> None:
        """Raises Aborted when it is time to end."""
        if self._stopped:
            raise Aborted("stopped")
        # The age is counted by our own steady clock, so that a corrected wall clock ends nothing.
        touched = self._last_contact()
        if touched != self._touched:
            self._touched, self._heard = touched, time.monotonic()
        elif time.monotonic() - self._heard > self._silence_s:
            raise Aborted("silence")

    def _last_contact(self) -> Optional[int]:
        try:
            return self._contact.stat().st_mtime_ns
        except OSError:
            return None

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or sooner when a child may have ended; raises Aborted."""
        self.check()
        ready, _, _ = select.select([self._reader], [], [], max(0.0, min(seconds, 1.0)))
        if ready:
            self._reader.recv(4096)
        self.check()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` and not sooner; raises Aborted."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.wait(left)


def _ignore(*_: Any) -> None:
    """Unlike SIG_IGN, a handler is not inherited by the programs that we start."""
