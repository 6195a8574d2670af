"""One unary call over HTTP/2: the status that it ends with, and the bytes of its message."""

import gzip
import hashlib
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.dispatch.tls import make_certificates
from tests.agents.checking import a_check, checked, expecting, problem
from tests.support.webservers import Headers, Reply, Site, build_tls_context, http1, http2, serving

CALL = "/helloworld.Greeter/SayHello"
#: Field 1, of length 5: what protobuf makes of {"name": "world"} and of {"message": "hello"}.
ASKED, SAID = b"\x0a\x05world", b"\x0a\x05hello"
GRPC: Headers = (("content-type", "application/grpc+proto"),)
OK: Headers = (("grpc-status", "0"),)


def framed(message: bytes, compressed: int = 0) -> bytes:
    return struct.pack(">BI", compressed, len(message)) + message


def reply(body: bytes, trailers: Headers = OK, headers: Headers = GRPC) -> Reply:
    return Reply(headers=headers, body=body, trailers=trailers)


REPLIES = {
    CALL: reply(framed(SAID)),
    "/empty": reply(framed(b"")),
    "/gzip": reply(framed(gzip.compress(SAID), 1), OK, (*GRPC, ("grpc-encoding", "gzip"))),
    "/missing": reply(b"", (("grpc-status", "5"), ("grpc-message", "no%20such user"))),
    "/at-once": Reply(headers=(*GRPC, ("grpc-status", "12"), ("grpc-message", "not here"))),
    "/silent": reply(b""),
    "/no-status": reply(framed(SAID), (("x-other", "1"),)),
    "/odd-status": reply(framed(SAID), (("grpc-status", "fine"),)),
    "/short": reply(framed(SAID)[:-2]),
    "/prefix": reply(b"\0\0"),
    "/two": reply(framed(SAID) * 2),
    "/page": Reply(headers=(("content-type", "text/html"),), body=b"<html>"),
    "/reset": Reply(headers=GRPC, trailers=OK, reset=True),
}
UNARY = a_check(
    protocol="grpc", method="POST", path=CALL, body=ASKED, statuses=(200,), grpc_status=0
)


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(REPLIES)


@pytest.fixture(scope="module")
def port(site: Site) -> Iterator[int]:
    with serving(http2(site)) as port:
        yield port


def test_grpc_check_calls_and_reports_the_message(port: int, site: Site) -> None:
    check = UNARY._replace(headers=(("x-user", "me"), ("TE", "gzip")))
    assert checked(port, check) == {
        "name": "load",
        "problem": None,
        "protocol": "grpc",
        "status": 200,
        "length": len(SAID),
        "sha256": hashlib.sha256(SAID).hexdigest(),
        "encoding": "identity",
    }
    request = site.requests[-1]
    assert (request.method, request.body) == ("POST", framed(ASKED))
    assert {name: request.headers[name] for name in ("content-type", "te", "x-user")} == {
        "content-type": "application/grpc",
        "te": "trailers",
        "x-user": "me",
    }


def test_grpc_check_calls_with_tls(site: Site, tmp_path: Path) -> None:
    certificates = make_certificates([], now=datetime.now(UTC))
    with serving(http2(site), build_tls_context(certificates, tmp_path, "h2")) as port:
        assert problem(port, UNARY._replace(tls=True), tmp_path / "ca.pem") is None


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("length", 7, CALL),
        ("sha256", hashlib.sha256(SAID).hexdigest(), CALL),
        ("text", "\n\x05hello", CALL),
        ("matches", "hello$", CALL),
        ("text", "\n\x05hello", "/gzip"),
        ("length", 0, "/empty"),
    ],
)
def test_grpc_check_compares_the_message(port: int, kind: str, value: str | int, path: str) -> None:
    right = expecting(kind, value, protocol="grpc", path=path, grpc_status=0)
    assert problem(port, right) is None
    wrong = expecting(kind, 9 if kind == "length" else "bye", protocol="grpc", path=path)
    assert problem(port, wrong) is not None


def test_grpc_check_reports_the_compression_of_the_message(port: int) -> None:
    assert checked(port, UNARY._replace(path="/gzip"))["encoding"] == "gzip"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/missing", "grpc-status 5 ('no such user') instead of 0"),
        ("/at-once", "grpc-status 12 ('not here') instead of 0"),
        ("/silent", "no message"),
        ("/no-status", "no grpc-status"),
        ("/odd-status", "grpc-status 'fine'"),
        ("/short", "a message that ends after 5 of 7 bytes"),
        ("/prefix", r"a message that ends in its prefix (b'\x00\x00')"),
        ("/two", "more than one message (12 bytes after the first)"),
        ("/page", "HTTP/2 with content-type 'text/html' instead of gRPC"),
        ("/reset", "a stream that is reset (INTERNAL_ERROR)"),
    ],
)
def test_grpc_check_reports_what_went_wrong(port: int, path: str, message: str) -> None:
    assert problem(port, UNARY._replace(path=path)) == message


def test_grpc_check_accepts_the_error_that_is_expected(port: int) -> None:
    result = checked(port, UNARY._replace(path="/missing", grpc_status=5))
    assert (result["problem"], result["length"]) == (None, 0)


def test_grpc_check_ignores_a_status_without_an_expectation(port: int) -> None:
    assert problem(port, UNARY._replace(path="/missing", grpc_status=None)) is None


def test_grpc_check_distinguishes_http2_from_grpc(port: int) -> None:
    assert checked(port, UNARY._replace(path="/page"))["protocol"] == "h2"


def test_grpc_check_names_http_1_1(site: Site) -> None:
    with serving(http1(site)) as port:
        assert problem(port, UNARY) == "HTTP/1.1 instead of HTTP/2"
