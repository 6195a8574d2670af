"""Wait until a process of a trial responds as the plan expects."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from ..hosts.all_hosts import AnyProcess
from ..http.checks import find_ready_problem
from ..platform.limits import describe_exit
from ..step.plan import Ready

#: The pause between two polls: a tenth of the time so far, within these limits.
SHORTEST_POLL_S, LONGEST_POLL_S = 0.002, 0.02


class NotReady(Exception):
    """`why`: "ended", "wrong" (another response than expected) or "silent"."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def await_ready(
    process: AnyProcess, ready: Ready, heartbeat: Callable[[], None], ca: Optional[Path] = None
) -> float:
    """Poll the process until it responds as the plan expects; NotReady after its timeout.

    Return how many seconds its first response took.
    """
    first_s: Optional[float] = None
    start = time.monotonic()
    deadline = start + ready.timeout_s
    wrong: Optional[str] = None
    while time.monotonic() < deadline:
        code = process.exit_code
        if code is not None:
            cause = describe_exit(code)
            raise NotReady("ended", f"ended with {cause} before it answered")
        began = time.monotonic()
        try:
            wrong = find_ready_problem(process.address, process.port, ready, ca)
        except OSError:
            _pause(start, heartbeat)
            continue
        if first_s is None:
            first_s = time.monotonic() - began
        if wrong is None:
            return first_s
        _pause(start, heartbeat)
    if wrong is not None:
        raise NotReady("wrong", f"answers {wrong}")
    expected = "accept a connection" if ready.path is None else f"answer GET {ready.path}"
    raise NotReady(
        "silent", f"did not {expected} on port {process.port} within {ready.timeout_s:g} s"
    )


def _pause(start: float, heartbeat: Callable[[], None]) -> None:
    heartbeat()
    time.sleep(min(LONGEST_POLL_S, max(SHORTEST_POLL_S, (time.monotonic() - start) / 10)))
