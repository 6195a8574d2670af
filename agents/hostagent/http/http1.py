"""HTTP/1.1: one request over a connection."""

from __future__ import annotations

import contextlib
import http.client
from typing import Optional

from .connection import Connection
from .messages import (
    BODY_LIMIT,
    TOO_LONG,
    Request,
    Response,
    ResponseError,
    get_content_encoding,
    join_headers,
    starts_http2,
)

ALPN = ("http/1.1",)
_WITH_BODY = {"POST", "PUT", "PATCH"}


def check_protocol(connection: Connection) -> None:
    """ALPN offers nothing else, and a server without ALPN speaks HTTP/1.1."""


def send_request(connection: Connection, request: Request) -> Response:
    """Return the response; OSError without one, ResponseError if it is not HTTP/1.1."""
    try:
        # A server that rejects the body may respond and close before it has read it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(_format_head(request) + (request.body or b""))
        response = http.client.HTTPResponse(connection, method=request.method)  # type: ignore[arg-type]
        try:
            response.begin()
            return _read(response)
        finally:
            response.close()
    except http.client.RemoteDisconnected:
        raise
    except http.client.HTTPException as error:
        raise _describe_response(connection.first, f"{type(error).__name__}: {error}") from error
    except OSError as error:
        if not connection.first:
            raise
        raise _describe_response(connection.first, f"it breaks off: {error}") from error


def _format_head(request: Request) -> bytes:
    names = {name.lower() for name, _ in request.headers}
    lines = [f"{request.method} {request.path} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"Host: {request.authority}")
    lines += [f"{name}: {value}" for name, value in request.headers]
    if _needs_length(request, names):
        lines.append(f"Content-Length: {len(request.body or b'')}")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def _needs_length(request: Request, names: set[str]) -> bool:
    if names & {"content-length", "transfer-encoding"}:
        return False
    return request.body is not None or request.method in _WITH_BODY


def _read(response: http.client.HTTPResponse) -> Response:
    headers, closes = join_headers(response.getheaders()), response.will_close
    body, fault = _read_body(response)
    return Response(
        protocol="h1",
        status=response.status,
        headers=headers,
        body=body,
        encoding=get_content_encoding(headers),
        closes=closes,
        fault=fault,
    )


def _read_body(response: http.client.HTTPResponse) -> tuple[bytes, Optional[str]]:
    """Return the received body, and why it is incomplete, or None."""
    body = bytearray()
    try:
        while len(body) <= BODY_LIMIT:
            piece = response.read1(1 << 16)
            if not piece:
                return bytes(body), _describe_missing_part(response, len(body))
            body += piece
    except http.client.IncompleteRead as error:
        body += error.partial
        return bytes(body), f"a body that ends after {len(body)} bytes, in the middle of a chunk"
    except OSError as error:
        return bytes(body), f"a body that breaks off after {len(body)} bytes: {error}"
    return bytes(body[:BODY_LIMIT]), TOO_LONG


def _describe_missing_part(response: http.client.HTTPResponse, received: int) -> Optional[str]:
    if not response.length:
        return None
    return f"a body that ends after {received} of {received + response.length} bytes"


def _describe_response(first: bytes, why: str) -> ResponseError:
    if starts_http2(first):
        return ResponseError("HTTP/2 instead of HTTP/1.1", "h2")
    if not first.startswith(b"HTTP/1."):
        return ResponseError(f"{first!r} instead of HTTP/1.1")
    return ResponseError(f"broken HTTP/1.1 ({why})", "h1")
