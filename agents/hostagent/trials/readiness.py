"""What a part answers, and how long it may take until it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from ..hosts.all_hosts import AnyPart
from ..http.checks import ready_problem
from ..platform.limits import ended_with
from ..step.plan import Ready

POLL_S = 0.02


class NotReady(Exception):
    """`why`: "ended", "wrong" (it answers something else) or "silent"; the text says the rest."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


def await_ready(
    part: AnyPart, ready: Ready, beat: Callable[[], None], ca: Optional[Path] = None
) -> None:
    """Ask until it answers as the plan expects; NotReady where it does not in time."""
    deadline = time.monotonic() + ready.timeout_s
    wrong: Optional[str] = None
    while time.monotonic() < deadline:
        code = part.exit_code
        if code is not None:
            said = ended_with(code)
            raise NotReady("ended", f"ended with {said} before it answered; its output follows")
        try:
            wrong = ready_problem(part.address, part.port, ready, ca)
        except OSError:
            beat()
            time.sleep(POLL_S)
            continue
        if wrong is None:
            return
        beat()
        time.sleep(POLL_S)
    if wrong is not None:
        raise NotReady("wrong", f"answers {wrong}")
    asked = "accept a connection" if ready.path is None else f"answer GET {ready.path}"
    raise NotReady("silent", f"did not {asked} on port {part.port} within {ready.timeout_s:g} s")
