"""gRPC: one unary call over HTTP/2, its messages as bytes."""

from __future__ import annotations

import struct
import urllib.parse
from typing import Optional

from . import http2
from .connection import Line
from .messages import Answer, Question

ALPN, agree = http2.ALPN, http2.agree
_OWN = (("content-type", "application/grpc"), ("te", "trailers"))
_PREFIX = struct.Struct(">BI")


def ask(line: Line, question: Question) -> Answer:
    """The one message that came as the answer's body; OSError and Fault as in http2.ask."""
    body = framed(question.body or b"")
    given = tuple(pair for pair in question.headers if pair[0].lower() not in dict(_OWN))
    asked = question._replace(method="POST", headers=_OWN + given, body=body)
    return _read(http2.ask(line, asked))


def framed(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message


def _read(answer: Answer) -> Answer:
    if answer.status is None:
        return answer._replace(protocol=None)
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("application/grpc"):
        return answer._replace(fault=f"HTTP/2 with content-type {kind!r} instead of gRPC")
    # An error without a message comes in one block of headers.
    trailers = {**answer.headers, **answer.trailers}
    told = answer._replace(protocol="grpc", trailers=_decoded(trailers))
    if answer.fault is not None:
        return told
    status = trailers.get("grpc-status", "")
    if not status.isdigit():
        return told._replace(fault=f"grpc-status {status!r}" if status else "no grpc-status")
    return _with_message(told._replace(grpc_status=int(status)))


def _decoded(trailers: dict[str, str]) -> dict[str, str]:
    message = urllib.parse.unquote(trailers.get("grpc-message", ""))
    return {**trailers, "grpc-message": message}


def _with_message(answer: Answer) -> Answer:
    frames = answer.body or b""
    if not frames:
        empty = answer._replace(body=b"", encoding=None)
        return empty._replace(fault="no message") if answer.grpc_status == 0 else empty
    if len(frames) < _PREFIX.size:
        return answer._replace(fault=f"a message that ends in its prefix ({frames!r})")
    compressed, length = _PREFIX.unpack_from(frames)
    message = frames[_PREFIX.size :]
    encoding = answer.headers.get("grpc-encoding") if compressed else "identity"
    return answer._replace(body=message, encoding=encoding, fault=_fault(message, length))


def _fault(message: bytes, length: int) -> Optional[str]:
    if len(message) < length:
        return f"a message that ends after {len(message)} of {length} bytes"
    if len(message) > length:
        return f"more than one message ({len(message) - length} bytes after the first)"
    return None
