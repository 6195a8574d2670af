"""When a server counts as ready, over each protocol."""

import socket
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.http.checks import find_ready_problem
from agents.hostagent.step.plan import Ready
from orchestrator.dispatch.tls import make_certificates
from tests.support.webservers import (
    LOOPBACK,
    Reply,
    Site,
    Speak,
    build_tls_context,
    http1,
    http2,
    saying,
    serving,
)

HEALTH = "/grpc.health.v1.Health/Check"
GRPC = (("content-type", "application/grpc"),)
SITE = Site(
    {
        "/hello": Reply(body=b"Hello, World!"),
        HEALTH: Reply(
            headers=GRPC,
            body=struct.pack(">BI", 0, 2) + b"\x08\x01",
            trailers=(("grpc-status", "0"),),
        ),
        "/lazy": Reply(headers=GRPC, trailers=(("grpc-status", "14"), ("grpc-message", "later"))),
    }
)


def ready(**changes: Any) -> Ready:
    plain: dict[str, Any] = {"path": "/hello", "status": 200, "body": None, "timeout_s": 10.0}
    return Ready(**{**plain, **changes})


@pytest.mark.parametrize(
    ("speak", "protocol"),
    [(http1(SITE), "h1"), (http2(SITE), "h2")],
    ids=["h1", "h2c"],
)
def test_readiness_needs_the_status_and_the_body(speak: Speak, protocol: str) -> None:
    with serving(speak) as port:

        def poll(**changes: Any) -> str | None:
            return find_ready_problem(LOOPBACK, port, ready(protocol=protocol, **changes), None)

        assert poll(body="Hello, World!") is None
        assert poll(body="Hi") == "body 'Hello, World!' instead of 'Hi' for GET /hello"
        assert poll(path="/x") == ("status 404 instead of 200, with body 'no such page' for GET /x")
        assert poll(path="/x", status=404) is None
    assert SITE.requests[-1].headers["accept-encoding"] == "identity"


def test_readiness_of_grpc_needs_a_successful_call() -> None:
    with serving(http2(SITE)) as port:

        def poll(path: str) -> str | None:
            return find_ready_problem(LOOPBACK, port, ready(protocol="grpc", path=path), None)

        assert poll(HEALTH) is None
        assert poll("/lazy") == "grpc-status 14 ('later') instead of 0 for a call of /lazy"


@pytest.mark.parametrize("protocol", ["h1", "h2", "grpc"])
def test_readiness_without_a_path_needs_only_a_connection(protocol: str) -> None:
    anyone = ready(path=None, protocol=protocol)
    with serving(saying()) as port:
        assert find_ready_problem(LOOPBACK, port, anyone, None) is None
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        find_ready_problem(LOOPBACK, port, anyone, None)


@pytest.mark.parametrize(
    ("protocol", "message"), [("h1", None), ("h2", "HTTP/1.1 instead of HTTP/2 (ALPN)")]
)
def test_readiness_with_tls_needs_a_handshake(
    tmp_path: Path, protocol: str, message: str | None
) -> None:
    certificates = make_certificates([], now=datetime.now(UTC))
    wanted = ready(path=None, protocol=protocol, tls=True)
    with serving(http1(SITE), build_tls_context(certificates, tmp_path, "http/1.1")) as port:
        assert find_ready_problem(LOOPBACK, port, wanted, tmp_path / "ca.pem") == message
    with serving(saying()) as port, pytest.raises(OSError, match="TLS handshake"):
        find_ready_problem(LOOPBACK, port, wanted, tmp_path / "ca.pem")
