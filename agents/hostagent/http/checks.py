"""The result of a check, and whether a server is ready."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from ..step.plan import Check, Expected, Ready
from .connection import create_tls_context, open_connection
from .expectations import accepts_status, find_problem, format_statuses
from .messages import Response, ResponseError
from .sending import build_target, import_protocol, send_once

#: Sends one request over HTTP/3 with the load tool; returns {"status": …, "length": …}.
RequestByTool = Callable[[Sequence[str]], Mapping[str, Any]]

_READY_TIMEOUT_S = 5.0


def build_checked(check: Check, response: Response) -> dict[str, Any]:
    """Return CHECKED of protocol.py without "when"."""
    body = None if response.status is None else response.body or b""
    return {
        "name": check.name,
        "problem": find_problem(check, response),
        "protocol": response.protocol,
        "status": response.status,
        "length": None if body is None else len(body),
        "sha256": None if body is None else hashlib.sha256(body).hexdigest(),
        "encoding": response.encoding,
    }


def find_ready_problem(address: str, port: int, ready: Ready, ca: Optional[Path]) -> Optional[str]:
    """Return None if the server is ready, else its unexpected response. OSError without a response.

    With gRPC it calls `path` with an empty message, which must end with OK.
    """
    timeout_s = min(ready.timeout_s, _READY_TIMEOUT_S)
    if ready.path is None:
        return _find_connection_problem(address, port, ready, timeout_s, ca)
    check = Check(
        name="ready",
        method="GET",
        path=ready.path,
        headers=(("accept-encoding", "identity"),),
        body=None,
        protocol=ready.protocol,
        tls=ready.tls,
        timeout_s=timeout_s,
        argv=None,
        statuses=(ready.status,),
        response_headers={},
        response=None if ready.body is None else Expected("text", ready.body),
        encoding=None,
        grpc_status=0,
    )
    target = build_target(address, port, ca, tls=ready.tls)
    problem = find_problem(check, send_once(target, check))
    return None if problem is None else f"{problem} for {_describe_request(ready)}"


def _describe_request(ready: Ready) -> str:
    return f"a call of {ready.path}" if ready.protocol == "grpc" else f"GET {ready.path}"


def _find_connection_problem(
    address: str, port: int, ready: Ready, timeout_s: float, ca: Optional[Path]
) -> Optional[str]:
    tls = create_tls_context(ca) if ready.tls else None
    protocol_module = import_protocol(ready.protocol)
    try:
        connection = open_connection(address, port, timeout_s, tls, protocol_module.ALPN)
        connection.close()
        protocol_module.check_protocol(connection)
    except ResponseError as fault:
        return str(fault)
    return None


def check_by_tool(check: Check, request_by_tool: RequestByTool) -> dict[str, Any]:
    """Return CHECKED without "when" from the load tool's response to an HTTP/3 request.

    Only its status and length are known.
    """
    response = request_by_tool(check.argv or ())
    status, length = response["status"], response["length"]
    return {
        "name": check.name,
        "problem": _find_tool_problem(check, status, length),
        "protocol": None if status is None else response.get("protocol") or "h3",
        "status": status,
        "length": length,
        "sha256": None,
        "encoding": None,
    }


def _find_tool_problem(check: Check, status: Optional[int], length: Optional[int]) -> Optional[str]:
    if status is None:
        return "no response that the load tool could read over HTTP/3"
    if not accepts_status(check, status):
        return f"status {status} instead of {format_statuses(check)}"
    if check.response is None or check.response.kind != "length" or check.response.value == length:
        return None
    if length is None:
        return f"a body of unknown length instead of {check.response.value} bytes"
    return f"a body of {length} bytes instead of {check.response.value}"
