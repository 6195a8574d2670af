"""HTTP/1.1: one request over a line."""

from __future__ import annotations

import contextlib
import http.client
from typing import Optional

from .connection import Line
from .messages import (
    BODY_LIMIT,
    TOO_LONG,
    Answer,
    Fault,
    Question,
    begins_http2,
    content_encoding,
    gathered,
)

ALPN = ("http/1.1",)
_WITH_BODY = {"POST", "PUT", "PATCH"}


def agree(line: Line) -> None:
    """Nothing else was offered, and a server without ALPN speaks HTTP/1.1."""


def ask(line: Line, question: Question) -> Answer:
    """What came; OSError where nothing did, Fault where it was no HTTP/1.1."""
    try:
        # A server that does not want the body may answer and close before it has read it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(_head(question) + (question.body or b""))
        response = http.client.HTTPResponse(line, method=question.method)  # type: ignore[arg-type]
        try:
            response.begin()
            return _read(response)
        finally:
            response.close()
    except http.client.RemoteDisconnected:
        raise
    except http.client.HTTPException as error:
        raise _what_came(line.first, f"{type(error).__name__}: {error}") from error
    except OSError as error:
        if not line.first:
            raise
        raise _what_came(line.first, f"it breaks off: {error}") from error


def _head(question: Question) -> bytes:
    names = {name.lower() for name, _ in question.headers}
    lines = [f"{question.method} {question.path} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"Host: {question.authority}")
    lines += [f"{name}: {value}" for name, value in question.headers]
    if _needs_length(question, names):
        lines.append(f"Content-Length: {len(question.body or b'')}")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def _needs_length(question: Question, names: set[str]) -> bool:
    if names & {"content-length", "transfer-encoding"}:
        return False
    return question.body is not None or question.method in _WITH_BODY


def _read(response: http.client.HTTPResponse) -> Answer:
    headers = gathered(response.getheaders())
    body, fault = _body(response)
    return Answer(
        protocol="h1",
        status=response.status,
        headers=headers,
        body=body,
        encoding=content_encoding(headers),
        fault=fault,
    )


def _body(response: http.client.HTTPResponse) -> tuple[bytes, Optional[str]]:
    """What came of it, and why that is not all of it."""
    body = bytearray()
    try:
        while len(body) <= BODY_LIMIT:
            piece = response.read1(1 << 16)
            if not piece:
                return bytes(body), _missing(response, len(body))
            body += piece
    except http.client.IncompleteRead as error:
        body += error.partial
        return bytes(body), f"a body that ends after {len(body)} bytes, in the middle of a chunk"
    except OSError as error:
        return bytes(body), f"a body that breaks off after {len(body)} bytes: {error}"
    return bytes(body[:BODY_LIMIT]), TOO_LONG


def _missing(response: http.client.HTTPResponse, came: int) -> Optional[str]:
    if not response.length:
        return None
    return f"a body that ends after {came} of {came + response.length} bytes"


def _what_came(first: bytes, why: str) -> Fault:
    if begins_http2(first):
        return Fault("HTTP/2 instead of HTTP/1.1", "h2")
    if not first.startswith(b"HTTP/1."):
        return Fault(f"{first!r} instead of HTTP/1.1")
    return Fault(f"broken HTTP/1.1 ({why})", "h1")
