"""Asking the server under test, and judging what came."""

from __future__ import annotations

import http.client
from typing import Optional

from .plan import Ready

_SHOWN = 200


def complaint(ready: Ready, port: int) -> Optional[str]:
    """What is wrong with the answer to `ready.path`, None if nothing is.

    Raises OSError or http.client.HTTPException where no answer came.
    """
    status, body = _get(port, ready)
    if status != ready.status:
        return (
            f"GET {ready.path}: status {ready.status} was expected, {status} came: {_shown(body)}"
        )
    if ready.body is not None and body != ready.body.encode():
        wanted = _shown(ready.body.encode())
        return f"GET {ready.path}: the body {wanted} was expected, {_shown(body)} came"
    return None


def _get(port: int, ready: Ready) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=max(0.1, ready.timeout_s))
    limit = max(1 << 20, len((ready.body or "").encode()) + 1)
    try:
        connection.request("GET", ready.path)
        response = connection.getresponse()
        return response.status, response.read(limit)
    finally:
        connection.close()


def _shown(body: bytes) -> str:
    text = repr(body[:_SHOWN].decode("utf-8", "replace"))
    return text if len(body) <= _SHOWN else f"{text}… ({len(body)} bytes)"
