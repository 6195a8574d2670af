"""What a server answers, over whichever protocol it is asked, and whether that is right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Optional

from ..platform.ports import in_url
from ..step.plan import Check, Expected, Ready
from .connection import open_line, trusting
from .expectations import problem_of
from .messages import Answer, Fault, Question

#: Asks once over HTTP/3: what the load tool's command line got, as {"status": …, "length": …}.
AskByTool = Callable[[Sequence[str]], Mapping[str, Any]]

_READY_TIMEOUT_S = 5.0
#: Loaded when they are needed: HTTP/2 costs a start of the agent more than all the rest.
_SPEAKERS = {"h1": ".http1", "h2": ".http2", "grpc": ".grpc"}


def run_check(
    address: str, port: int, check: Check, ca: Optional[Path], ask_by_tool: AskByTool
) -> dict[str, Any]:
    """CHECKED of protocol.py without "when". OSError where nobody answered at all."""
    if check.protocol == "h3":
        return _checked_by_tool(check, ask_by_tool)
    answer = _ask(address, port, check, ca)
    body = None if answer.status is None else answer.body or b""
    return {
        "name": check.name,
        "problem": problem_of(check, answer),
        "protocol": answer.protocol,
        "status": answer.status,
        "length": None if body is None else len(body),
        "sha256": None if body is None else hashlib.sha256(body).hexdigest(),
        "encoding": answer.encoding,
    }


def ready_problem(address: str, port: int, ready: Ready, ca: Optional[Path]) -> Optional[str]:
    """None where the server is ready; else what it answers instead. OSError where it does not yet.

    gRPC is asked by a call of `path` with an empty message, which has to end with OK.
    """
    timeout_s = min(ready.timeout_s, _READY_TIMEOUT_S)
    if ready.path is None:
        return _connected(address, port, ready, timeout_s, ca)
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
        status=ready.status,
        response_headers={},
        response=None if ready.body is None else Expected("text", ready.body),
        encoding=None,
        grpc_status=0,
    )
    problem = problem_of(check, _ask(address, port, check, ca))
    return None if problem is None else f"{problem} for {_asked(ready)}"


def _asked(ready: Ready) -> str:
    return f"a call of {ready.path}" if ready.protocol == "grpc" else f"GET {ready.path}"


def _connected(
    address: str, port: int, ready: Ready, timeout_s: float, ca: Optional[Path]
) -> Optional[str]:
    tls = trusting(ca) if ready.tls else None
    speaker = _speaker(ready.protocol)
    try:
        line = open_line(address, port, timeout_s, tls, speaker.ALPN)
        line.close()
        speaker.agree(line)
    except Fault as fault:
        return str(fault)
    return None


def _ask(address: str, port: int, check: Check, ca: Optional[Path]) -> Answer:
    tls = trusting(ca) if check.tls else None
    speaker = _speaker(check.protocol)
    authority = f"{in_url(address)}:{port}"
    question = Question(authority, check.method, check.path, check.headers, check.body)
    try:
        line = open_line(address, port, check.timeout_s, tls, speaker.ALPN)
        try:
            speaker.agree(line)
            answer: Answer = speaker.ask(line, question)
            return answer
        finally:
            line.close()
    except Fault as fault:
        return Answer(protocol=fault.protocol, fault=str(fault))


def _speaker(protocol: str) -> Any:
    return import_module(_SPEAKERS[protocol], __package__)


def _checked_by_tool(check: Check, ask_by_tool: AskByTool) -> dict[str, Any]:
    """Nothing but status and length is known of what the load tool got."""
    told = ask_by_tool(check.argv or ())
    status, length = told["status"], told["length"]
    return {
        "name": check.name,
        "problem": _tool_problem(check, status, length),
        "protocol": None if status is None else told.get("protocol") or "h3",
        "status": status,
        "length": length,
        "sha256": None,
        "encoding": None,
    }


def _tool_problem(check: Check, status: Optional[int], length: Optional[int]) -> Optional[str]:
    if status is None:
        return "nothing that the load tool could read over HTTP/3"
    if check.status not in (None, status):
        return f"status {status} instead of {check.status}"
    if check.response is None or check.response.kind != "length" or check.response.value == length:
        return None
    if length is None:
        return f"a body of unknown length instead of {check.response.value} bytes"
    return f"a body of {length} bytes instead of {check.response.value}"
