"""What a part answers, and how long it may take until it does."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable
from typing import Optional

from .plan import Ready
from .stage import AnyPart

POLL_S = 0.02
_ANSWER_TIMEOUT_S = 5.0
_BODY_LIMIT = 1 << 20


class NotReady(Exception):
    """`why`: "ended", "wrong" (it answers something else) or "silent"; the text says the rest."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


def await_ready(part: AnyPart, ready: Ready, beat: Callable[[], None]) -> None:
    """Ask until it answers as the plan expects; NotReady where it does not in time."""
    deadline = time.monotonic() + ready.timeout_s
    wrong: Optional[str] = None
    while time.monotonic() < deadline:
        code = part.exit_code
        if code is not None:
            raise NotReady("ended", f"ended with {code} before it answered; its output follows")
        try:
            wrong = check_answer(part.address, part.port, ready)
        except (OSError, http.client.HTTPException):
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


def check_answer(address: str, port: int, ready: Ready) -> Optional[str]:
    """None if the part answers as the plan expects; else what came instead.

    OSError or HTTPException where nothing came that could be judged.
    """
    if ready.path is None:
        socket.create_connection((address, port), _ANSWER_TIMEOUT_S).close()
        return None
    connection = http.client.HTTPConnection(address, port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", ready.path, headers={"Accept-Encoding": "identity"})
        response = connection.getresponse()
        body = response.read(_BODY_LIMIT).decode("utf-8", "replace")
    finally:
        connection.close()
    if response.status != ready.status:
        return f"status {response.status} instead of {ready.status} for GET {ready.path}"
    if ready.body is not None and body != ready.body:
        return f"body {body[:200]!r} instead of {ready.body[:200]!r} for GET {ready.path}"
    return None
