"""Which protocol is really spoken, with TLS and without, and whether the certificate is good."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.hostagent.http import http2 as http2_client
from orchestrator.dispatch.tls import Certificates, make_certificates
from tests.agents.checking import a_check, checked, expecting, problem
from tests.support.webservers import (
    Reply,
    Site,
    build_tls_context,
    by_alpn,
    http1,
    http2,
    saying,
    serving,
)

#: In these tests; 16 MiB take seconds if both ends are written in Python.
BODY_LIMIT = 1 << 20

REPLIES = {
    "/hello": Reply(headers=(("content-type", "text/plain"),), body=b"Hello, World!"),
    "/empty": Reply(status=204),
    "/reset": Reply(reset=True),
    "/short": Reply(body=b"Hello", declared=13),
    "/long": Reply(body=b"x" * 300_000),
    "/huge": Reply(body=bytes(BODY_LIMIT + 1)),
}
H2 = a_check(protocol="h2", statuses=(200,))
H2_TLS = H2._replace(tls=True)


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return make_certificates([], now=datetime.now(UTC))


@pytest.fixture
def ca(certificates: Certificates, tmp_path: Path) -> Path:
    path = tmp_path / "job-ca.pem"
    path.write_text(certificates.ca)
    return path


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(REPLIES)


@pytest.fixture(scope="module")
def h2c(site: Site) -> Iterator[int]:
    with serving(http2(site)) as port:
        yield port


@pytest.mark.parametrize(("protocol", "alpn"), [("h1", "http/1.1"), ("h2", "h2")])
def test_http2_check_works_with_tls(
    site: Site, certificates: Certificates, ca: Path, tmp_path: Path, protocol: str, alpn: str
) -> None:
    tls = build_tls_context(certificates, tmp_path, "h2", "http/1.1")
    with serving(by_alpn(http1(site), h2=http2(site)), tls) as port:
        result = checked(port, expecting("text", "Hello, World!", protocol=protocol, tls=True), ca)
    assert (result["problem"], result["protocol"], result["length"]) == (None, protocol, 13)


def test_http2_check_works_without_tls_by_prior_knowledge(h2c: int, site: Site) -> None:
    headers = (("X-Colour", "red"), ("Host", "example.org"))
    check = expecting("text", "Hello, World!", protocol="h2", method="PUT", headers=headers)
    result = checked(h2c, check._replace(body=b"abc"))
    assert (result["problem"], result["protocol"], result["status"]) == (None, "h2", 200)
    request = site.requests[-1]
    assert (request.method, request.path, request.body) == ("PUT", "/hello", b"abc")
    assert request.headers == {
        ":method": "PUT",
        ":scheme": "http",
        ":authority": "example.org",
        ":path": "/hello",
        "x-colour": "red",
    }


def test_http2_check_exchanges_bodies_larger_than_the_flow_control_window(
    h2c: int, site: Site
) -> None:
    sent = b"y" * 300_000
    result = checked(h2c, H2._replace(method="POST", path="/long", body=sent))
    assert (result["problem"], result["length"]) == (None, 300_000)
    assert site.requests[-1].body == sent


def test_http2_check_reads_no_more_than_the_limit(
    h2c: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http2_client.BODY_LIMIT == 16 << 20
    monkeypatch.setattr(http2_client, "BODY_LIMIT", BODY_LIMIT)
    result = checked(h2c, H2._replace(path="/huge"))
    assert result["problem"] == "a body longer than 16 MiB, of which no more was read"
    assert result["length"] == BODY_LIMIT


def test_http2_check_accepts_a_response_without_a_body(h2c: int) -> None:
    result = checked(h2c, H2._replace(path="/empty", statuses=(204,)))
    assert (result["problem"], result["length"]) == (None, 0)
    assert problem(h2c, H2._replace(method="HEAD")) is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nothing", "status 404 instead of 200, with body 'no such page'"),
        ("/reset", "a stream that is reset (INTERNAL_ERROR)"),
        ("/short", "broken HTTP/2 (InvalidBodyLengthError: "),
    ],
)
def test_http2_check_reports_what_went_wrong(h2c: int, path: str, message: str) -> None:
    assert str(problem(h2c, H2._replace(path=path))).startswith(message)


def test_http2_check_detects_the_fallback_to_http_1_1(
    site: Site, certificates: Certificates, ca: Path, tmp_path: Path
) -> None:
    for alpn in (["http/1.1"], []):
        with serving(http1(site), build_tls_context(certificates, tmp_path, *alpn)) as port:
            result = checked(port, H2_TLS, ca)
        assert result["problem"] == "HTTP/1.1 instead of HTTP/2 (ALPN)"
        assert (result["protocol"], result["status"], result["length"]) == ("h1", None, None)


def test_http2_check_detects_http_1_1_that_responds_to_the_preface() -> None:
    refusal = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
    with serving(saying(refusal)) as port:
        result = checked(port, H2)
    assert (result["problem"], result["protocol"]) == ("HTTP/1.1 instead of HTTP/2", "h1")


@pytest.mark.parametrize("words", [b"hm?", b"<html>There is no such thing here.</html>"])
def test_http2_check_names_a_server_that_speaks_neither(words: bytes) -> None:
    with serving(saying(words)) as port:
        assert problem(port, H2) == f"{words!r} instead of HTTP/2"


def test_http1_check_names_a_server_that_speaks_http2(h2c: int) -> None:
    result = checked(h2c, a_check())
    assert (result["problem"], result["protocol"]) == ("HTTP/2 instead of HTTP/1.1", "h2")


def test_http1_check_names_http2_that_only_sends_its_settings() -> None:
    settings = bytes(3) + b"\4" + bytes(5)
    with serving(saying(settings, then_wait=True)) as port:
        assert problem(port, a_check(timeout_s=0.3)) == "HTTP/2 instead of HTTP/1.1"


def test_http2_check_reports_that_the_server_has_no_tls(ca: Path) -> None:
    with serving(saying(b"HTTP/1.0 400 no\r\n\r\n")) as port:
        assert str(problem(port, H2_TLS, ca)).startswith("the TLS handshake failed: ")


def test_http2_check_trusts_only_the_certificate_authority_of_the_job(
    site: Site, certificates: Certificates, ca: Path, tmp_path: Path
) -> None:
    other = make_certificates([], now=datetime.now(UTC))
    with serving(http2(site), build_tls_context(other, tmp_path, "h2")) as port:
        message = str(problem(port, H2_TLS, ca))
    assert message.startswith("a certificate that is not valid for 127.0.0.1: ")
    with serving(http2(site), build_tls_context(certificates, tmp_path, "h2"), "127.0.0.2") as port:
        message = str(problem(port, H2_TLS, ca, "127.0.0.2"))
    assert message == (
        "a certificate that is not valid for 127.0.0.2: "
        "IP address mismatch, certificate is not valid for '127.0.0.2'"
    )


def test_http2_check_works_with_an_ipv6_address(
    site: Site, certificates: Certificates, ca: Path, tmp_path: Path
) -> None:
    with serving(http2(site), build_tls_context(certificates, tmp_path, "h2"), "::1") as port:
        assert problem(port, H2_TLS, ca, "::1") is None
    assert site.requests[-1].headers[":authority"] == f"[::1]:{port}"
