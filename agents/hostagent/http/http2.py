"""HTTP/2: one request over a connection.

The only module that imports a third-party package: h2, which is part of the bundle. It is loaded
only for a request over HTTP/2, because loading it takes time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

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

#: HTTP/1.1 is offered too, so that a fallback of the server is detected.
ALPN = ("h2", "http/1.1")
_STREAM = 1
_PIECE = 1 << 16


def check_protocol(connection: Connection) -> None:
    """Raise ResponseError if TLS did not negotiate HTTP/2."""
    if connection.tls and connection.alpn != "h2":
        raise ResponseError("HTTP/1.1 instead of HTTP/2 (ALPN)", "h1")


def send_request(connection: Connection, request: Request) -> Response:
    """Return the response; OSError without one, ResponseError if it is not HTTP/2.

    Without TLS it uses prior knowledge.
    """
    return _Exchange(connection, request).response()


class _Exchange:
    """One stream from its request to its end; `_fault` is the reason of an abnormal end."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self._h2.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.ENABLE_PUSH: 0}
        )
        self._headers: dict[str, str] = {}
        self._trailers: dict[str, str] = {}
        self._body = bytearray()
        self._ended = False
        self._fault: Optional[str] = None

    def response(self) -> Response:
        try:
            self._send_request()
            while not self._ended:
                self._receive()
        except h2.exceptions.ProtocolError as error:
            self._fail(f"broken HTTP/2 ({type(error).__name__}: {error})")
        except OSError as error:
            if not self._connection.first:
                raise
            self._fail(f"an answer that breaks off after {len(self._body)} bytes: {error}")
        return self._response()

    def _send_request(self) -> None:
        body = self._request.body
        self._h2.initiate_connection()
        self._h2.send_headers(_STREAM, self._request_headers(), end_stream=body is None)
        self._flush()
        if body is not None:
            self._send(body)

    def _request_headers(self) -> list[tuple[str, str]]:
        request = self._request
        headers = [(name.lower(), value) for name, value in request.headers]
        authority = next((value for name, value in headers if name == "host"), request.authority)
        return [
            (":method", request.method),
            (":scheme", "https" if self._connection.tls else "http"),
            (":authority", authority),
            (":path", request.path),
            *((name, value) for name, value in headers if name != "host"),
        ]

    def _send(self, body: bytes) -> None:
        """Send the body as the flow control allows, until the stream ends."""
        while not self._ended:
            window = self._h2.local_flow_control_window(_STREAM)
            if body and not window:
                self._receive()
                continue
            size = min(window, self._h2.max_outbound_frame_size)
            piece, body = body[:size], body[size:]
            self._h2.send_data(_STREAM, piece, end_stream=not body)
            self._flush()
            if not body:
                return

    def _flush(self) -> None:
        self._connection.sendall(self._h2.data_to_send())

    def _receive(self) -> None:
        """Wait for data and handle its events."""
        data = self._connection.recv(_PIECE)
        if not data:
            raise ConnectionResetError("the connection ended before the answer")
        for event in self._h2.receive_data(data):
            if not self._ended:
                self._handle_event(event)
        self._flush()

    def _handle_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            self._headers = _read(event.headers)
        elif isinstance(event, h2.events.TrailersReceived):
            self._trailers = _read(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            self._handle_data(event)
        elif isinstance(event, h2.events.StreamEnded):
            self._ended = True
        elif isinstance(event, h2.events.StreamReset):
            self._end(f"a stream that is reset ({_name(event.error_code)})")
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._end(f"the end of the connection (GOAWAY, {_name(event.error_code)})")

    def _handle_data(self, event: h2.events.DataReceived) -> None:
        self._body += event.data
        self._h2.acknowledge_received_data(event.flow_controlled_length, _STREAM)
        if len(self._body) > BODY_LIMIT:
            del self._body[BODY_LIMIT:]
            self._end(TOO_LONG)

    def _end(self, fault: str) -> None:
        self._fault = fault
        self._ended = True

    def _fail(self, fault: str) -> None:
        """End the stream with `fault`; ResponseError if the server does not speak HTTP/2."""
        if self._connection.first.startswith(b"HTTP/1."):
            raise ResponseError("HTTP/1.1 instead of HTTP/2", "h1")
        if not starts_http2(self._connection.first):
            raise ResponseError(f"{self._connection.first!r} instead of HTTP/2")
        self._end(fault)

    def _response(self) -> Response:
        status = self._headers.pop(":status", None)
        return Response(
            protocol="h2",
            status=None if status is None else int(status),
            headers=self._headers,
            trailers=self._trailers,
            body=bytes(self._body),
            encoding=None if status is None else get_content_encoding(self._headers),
            fault=self._fault,
        )


def _read(headers: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    return join_headers(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers
    )


def _name(code: Any) -> str:
    return str(getattr(code, "name", code))
