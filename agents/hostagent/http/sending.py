"""Send the request of a check over HTTP/1.1, HTTP/2 or gRPC."""

from __future__ import annotations

import ssl
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..platform.ports import format_host
from ..step.plan import Check
from .connection import Connection, create_tls_context, open_connection
from .messages import Request, Response, ResponseError

#: Loaded only when needed: loading HTTP/2 takes longer than the rest of the agent's start.
_PROTOCOL_MODULES = {"h1": ".http1", "h2": ".http2", "grpc": ".grpc"}

#: Names and values.
Headers = tuple[tuple[str, str], ...]


class Target(NamedTuple):
    """A server. `tls`: the context of its connections; None without TLS."""

    address: str
    port: int
    tls: Optional[ssl.SSLContext]


def build_target(address: str, port: int, ca: Optional[Path], *, tls: bool) -> Target:
    return Target(address, port, create_tls_context(ca) if tls else None)


def import_protocol(protocol: str) -> Any:
    """Return the module of h1, h2 or grpc."""
    return import_module(_PROTOCOL_MODULES[protocol], __package__)


def connect(target: Target, check: Check) -> Connection:
    """Connect for requests of the check, which all have to end within its timeout.

    OSError without a listener, ResponseError without the protocol of the check.
    """
    module = import_protocol(check.protocol)
    connection = open_connection(
        target.address, target.port, check.timeout_s, target.tls, module.ALPN
    )
    try:
        module.check_protocol(connection)
    except ResponseError:
        connection.close()
        raise
    return connection


def send_on(connection: Connection, target: Target, check: Check, extra: Headers = ()) -> Response:
    """Send the request with `extra` headers; OSError without a response."""
    authority = f"{format_host(target.address)}:{target.port}"
    headers = (*check.headers, *extra)
    request = Request(authority, check.method, check.path, headers, check.body)
    try:
        response: Response = import_protocol(check.protocol).send_request(connection, request)
        return response
    except ResponseError as fault:
        return build_faulty(fault)


def send_once(target: Target, check: Check, extra: Headers = ()) -> Response:
    """Send the request over a new connection; OSError without any response."""
    try:
        connection = connect(target, check)
    except ResponseError as fault:
        return build_faulty(fault)
    try:
        return send_on(connection, target, check, extra)
    finally:
        connection.close()


def build_faulty(fault: ResponseError) -> Response:
    return Response(protocol=fault.protocol, fault=str(fault))
