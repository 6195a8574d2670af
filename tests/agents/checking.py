"""Checks as the agent asks them, of a server on this machine."""

from pathlib import Path
from typing import Any

from agents.hostagent.http.checks import build_checked
from agents.hostagent.http.sending import build_target, send_once
from agents.hostagent.step.plan import Check, Expected
from tests.support.webservers import LOOPBACK


def a_check(**changes: Any) -> Check:
    """GET /hello over HTTP/1.1, of which nothing is judged but the protocol."""
    plain: dict[str, Any] = {
        "name": "load",
        "method": "GET",
        "path": "/hello",
        "headers": (),
        "body": None,
        "protocol": "h1",
        "tls": False,
        "timeout_s": 10.0,
        "argv": None,
        "statuses": None,
        "response_headers": {},
        "response": None,
        "encoding": None,
        "grpc_status": None,
    }
    return Check(**{**plain, **changes})


def expecting(kind: str, value: str | int, **changes: Any) -> Check:
    return a_check(response=Expected(kind, value), **changes)


def checked(
    port: int, check: Check, ca: Path | None = None, address: str = LOOPBACK
) -> dict[str, Any]:
    target = build_target(address, port, ca, tls=check.tls)
    return build_checked(check, send_once(target, check))


def problem(port: int, check: Check, ca: Path | None = None, address: str = LOOPBACK) -> str | None:
    message: str | None = checked(port, check, ca, address)["problem"]
    return message
