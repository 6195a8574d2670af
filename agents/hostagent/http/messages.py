"""A request to a server and its response, for all protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Optional

#: The rest of a longer body is not read.
BODY_LIMIT = 16 << 20
TOO_LONG = f"a body longer than {BODY_LIMIT >> 20} MiB, of which no more was read"
TITLES = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3", "grpc": "gRPC"}


class Request(NamedTuple):
    """`authority`: "host:port" of the server. `body` of gRPC: the message without its frame."""

    authority: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: Optional[bytes]


class Response(NamedTuple):
    """`body`: without chunks and frames, but with its content coding.

    Header names are in lower case. `closes`: whether the server announces that it ends the
    connection, with HTTP/1.1 only. `fault`: why the response is invalid or incomplete. Parts that
    were not received are None.
    """

    protocol: Optional[str] = None
    status: Optional[int] = None
    headers: Mapping[str, str] = {}
    trailers: Mapping[str, str] = {}
    body: Optional[bytes] = None
    encoding: Optional[str] = None
    grpc_status: Optional[int] = None
    closes: Optional[bool] = None
    fault: Optional[str] = None


class ResponseError(Exception):
    """The response has another protocol than requested; the message is as Response.fault."""

    def __init__(self, text: str, protocol: Optional[str] = None) -> None:
        super().__init__(text)
        self.protocol = protocol


def join_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers by name in lower case; values of the same name joined as in RFC 9110."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def starts_http2(first: bytes) -> bool:
    """Return whether the first bytes of a server are a SETTINGS or GOAWAY frame on stream 0."""
    return first[3:4] in {b"\4", b"\7"} and first[5:9] == bytes(4)


def get_content_encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity").strip().lower()
