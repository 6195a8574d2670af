"""One question to a server and what came back, whichever protocol carried them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Optional

#: No more than this is read of a body.
BODY_LIMIT = 16 << 20
TOO_LONG = f"a body longer than {BODY_LIMIT >> 20} MiB, of which no more was read"
TITLES = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3", "grpc": "gRPC"}


class Request(NamedTuple):
    """`authority` is the server's "host:port"; `body` of gRPC is the message, not yet framed."""

    authority: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: Optional[bytes]


class Response(NamedTuple):
    """`body` is as it came: without chunks and frames, but with its content coding.

    Names of headers are in lower case. `fault` says what kept the answer from being what was asked
    for or from being whole; what is None did not come.
    """

    protocol: Optional[str] = None
    status: Optional[int] = None
    headers: Mapping[str, str] = {}
    trailers: Mapping[str, str] = {}
    body: Optional[bytes] = None
    encoding: Optional[str] = None
    grpc_status: Optional[int] = None
    fault: Optional[str] = None


class ResponseError(Exception):
    """Somebody answered, but not as asked; the text says what came, as Answer.fault does."""

    def __init__(self, text: str, protocol: Optional[str] = None) -> None:
        super().__init__(text)
        self.protocol = protocol


def join_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By name in lower case; several of one name joined as RFC 9110 has it."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def starts_http2(first: bytes) -> bool:
    """Whether a server's first bytes are a frame on stream 0: SETTINGS, or GOAWAY at once."""
    return first[3:4] in {b"\4", b"\7"} and first[5:9] == bytes(4)


def content_encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity").strip().lower()
