"""gRPC: one unary call over HTTP/2, with messages as bytes."""

from __future__ import annotations

import struct
import urllib.parse
from typing import Optional

from . import http2
from .connection import Connection
from .messages import Request, Response

ALPN, check_protocol = http2.ALPN, http2.check_protocol
_GRPC_HEADERS = (("content-type", "application/grpc"), ("te", "trailers"))
_PREFIX = struct.Struct(">BI")


def send_request(connection: Connection, request: Request) -> Response:
    """Return the response with its message as the body; errors as in http2.send_request."""
    body = frame_message(request.body or b"")
    other_headers = tuple(
        pair for pair in request.headers if pair[0].lower() not in dict(_GRPC_HEADERS)
    )
    call = request._replace(method="POST", headers=_GRPC_HEADERS + other_headers, body=body)
    return _read(http2.send_request(connection, call))


def frame_message(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message


def _read(response: Response) -> Response:
    if response.status is None:
        return response._replace(protocol=None)
    kind = response.headers.get("content-type", "")
    if not kind.startswith("application/grpc"):
        return response._replace(fault=f"HTTP/2 with content-type {kind!r} instead of gRPC")
    # A response with an error and without a message has one block of headers.
    trailers = {**response.headers, **response.trailers}
    response = response._replace(protocol="grpc", trailers=_decode_trailers(trailers))
    if response.fault is not None:
        return response
    status = trailers.get("grpc-status", "")
    if not status.isdigit():
        return response._replace(fault=f"grpc-status {status!r}" if status else "no grpc-status")
    return _unframe_message(response._replace(grpc_status=int(status)))


def _decode_trailers(trailers: dict[str, str]) -> dict[str, str]:
    message = urllib.parse.unquote(trailers.get("grpc-message", ""))
    return {**trailers, "grpc-message": message}


def _unframe_message(response: Response) -> Response:
    frames = response.body or b""
    if not frames:
        empty = response._replace(body=b"", encoding=None)
        return empty._replace(fault="no message") if response.grpc_status == 0 else empty
    if len(frames) < _PREFIX.size:
        return response._replace(fault=f"a message that ends in its prefix ({frames!r})")
    compressed, length = _PREFIX.unpack_from(frames)
    message = frames[_PREFIX.size :]
    encoding = response.headers.get("grpc-encoding") if compressed else "identity"
    return response._replace(body=message, encoding=encoding, fault=_find_fault(message, length))


def _find_fault(message: bytes, length: int) -> Optional[str]:
    if len(message) < length:
        return f"a message that ends after {len(message)} of {length} bytes"
    if len(message) > length:
        return f"more than one message ({len(message) - length} bytes after the first)"
    return None
