"""What is judged of an answer, whatever carried it; asked over HTTP/1.1."""

import gzip
import hashlib
import socket
import zlib
from collections.abc import Iterator

import pytest

from agents.hostagent.http.checks import check_by_tool
from agents.hostagent.http.messages import BODY_LIMIT
from tests.agents.checking import a_check, checked, expecting, problem
from tests.support.webservers import LOOPBACK, Reply, Site, http1, saying, serving

TEXT = "Hello, World!"
BODY = TEXT.encode()
LONG = "a" * 1000
# A fixed time: each process of a parallel run must collect the same parameters.
ZIPPED = gzip.compress(BODY, mtime=0)
BARE = zlib.compressobj(wbits=-zlib.MAX_WBITS)
REPLIES = {
    "/hello": Reply(headers=(("Content-Type", "text/plain"),), body=BODY),
    "/broken": Reply(status=500, body=b"the database is locked"),
    "/gzip": Reply(headers=(("Content-Encoding", "gzip"),), body=ZIPPED),
    "/members": Reply(headers=(("Content-Encoding", "gzip"),), body=ZIPPED + ZIPPED),
    "/deflate": Reply(headers=(("Content-Encoding", "deflate"),), body=zlib.compress(BODY)),
    "/bare": Reply(
        headers=(("Content-Encoding", "deflate"),), body=BARE.compress(BODY) + BARE.flush()
    ),
    "/br": Reply(headers=(("Content-Encoding", "br"),), body=b"\x0b\x06\x80"),
    "/no-gzip": Reply(headers=(("Content-Encoding", "gzip"),), body=BODY),
    "/half-gzip": Reply(headers=(("Content-Encoding", "gzip"),), body=ZIPPED[:-9]),
    "/bomb": Reply(
        headers=(("Content-Encoding", "gzip"),), body=gzip.compress(bytes(BODY_LIMIT + 1))
    ),
    "/long": Reply(body=(LONG + "b").encode()),
    "/short": Reply(body=b"Hello", declared=13),
    "/huge": Reply(body=bytes(BODY_LIMIT + 1)),
    "/twice": Reply(headers=(("Via", "one"), ("via", "two"))),
}


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(REPLIES)


@pytest.fixture(scope="module")
def port(site: Site) -> Iterator[int]:
    with serving(http1(site)) as port:
        yield port


def test_check_reports_a_correct_response(port: int) -> None:
    check = a_check(
        statuses=(200,), response_headers={"content-type": "text/plain"}, encoding="identity"
    )
    assert checked(port, check) == {
        "name": "load",
        "problem": None,
        "protocol": "h1",
        "status": 200,
        "length": 13,
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "encoding": "identity",
    }


@pytest.mark.parametrize(
    ("path", "kind", "value"),
    [
        ("/hello", "text", TEXT),
        ("/hello", "length", len(BODY)),
        ("/hello", "sha256", hashlib.sha256(BODY).hexdigest()),
        ("/hello", "matches", r"^Hello, \w+!$"),
        ("/gzip", "text", TEXT),
        ("/gzip", "matches", "World"),
        ("/gzip", "length", len(ZIPPED)),
        ("/gzip", "sha256", hashlib.sha256(ZIPPED).hexdigest()),
        ("/members", "text", TEXT + TEXT),
        ("/deflate", "text", TEXT),
        ("/bare", "text", TEXT),
        ("/br", "length", 3),
    ],
)
def test_check_accepts_the_expected_body(port: int, path: str, kind: str, value: str | int) -> None:
    assert problem(port, expecting(kind, value, path=path)) is None


@pytest.mark.parametrize(
    ("path", "kind", "value", "message"),
    [
        ("/hello", "text", "Hello!", "body 'Hello, World!' instead of 'Hello!'"),
        ("/hello", "text", "hello, world!", "body 'Hello, World!' instead of 'hello, world!'"),
        ("/hello", "length", 12, "a body of 13 bytes instead of 12"),
        ("/hello", "sha256", "00", "a body with SHA-256 dffd6021bb2bd5b0af676290809ec3a5"),
        ("/hello", "matches", "^World", "body 'Hello, World!' without '^World'"),
        ("/hello", "matches", "(", "a body in which '(' cannot be searched for: "),
        ("/gzip", "text", "Hello", "body 'Hello, World!' instead of 'Hello'"),
        ("/gzip", "length", len(BODY), f"a body of {len(ZIPPED)} bytes instead of 13"),
        ("/long", "text", LONG + "c", f"'{'a' * 20}b' instead of '{'a' * 20}c', from character 98"),
        ("/no-gzip", "text", TEXT, "a body that is no gzip: "),
        ("/half-gzip", "text", TEXT, "a body that is no gzip: it ends too early"),
        ("/bomb", "text", TEXT, "a body that is longer than 16 MiB when it is decoded"),
        ("/br", "text", TEXT, "a body in br, which is not decoded here: expect its length"),
    ],
)
def test_check_reports_a_wrong_body(
    port: int, path: str, kind: str, value: str | int, message: str
) -> None:
    assert message in str(problem(port, expecting(kind, value, path=path)))


def test_check_reports_the_body_of_a_wrong_status(port: int) -> None:
    check = expecting("text", TEXT, path="/broken", statuses=(200,))
    assert problem(port, check) == ("status 500 instead of 200, with body 'the database is locked'")


def test_check_names_each_wrong_header_and_the_wrong_coding(port: int) -> None:
    wanted = {"content-type": "text/html", "etag": "1"}
    assert problem(port, a_check(response_headers=wanted, encoding="gzip")) == (
        "content-encoding identity instead of gzip; "
        "header content-type 'text/plain' instead of 'text/html'; "
        "no header etag (expected: '1')"
    )


def test_check_joins_headers_of_one_name(port: int) -> None:
    assert problem(port, a_check(path="/twice", response_headers={"via": "one, two"})) is None


def test_check_ignores_what_has_no_expectation(port: int) -> None:
    result = checked(port, a_check(path="/broken"))
    assert (result["problem"], result["status"]) == (None, 500)


def test_check_reports_where_a_body_ends_too_early(port: int) -> None:
    result = checked(port, expecting("text", TEXT, path="/short", statuses=(200,)))
    assert result["problem"] == "a body that ends after 5 of 13 bytes"
    assert (result["status"], result["length"]) == (200, 5)


def test_check_reads_no_more_than_16_mib(port: int) -> None:
    result = checked(port, a_check(path="/huge"))
    assert result["problem"] == "a body longer than 16 MiB, of which no more was read"
    assert result["length"] == BODY_LIMIT


def test_check_sends_the_defined_request(port: int, site: Site) -> None:
    checked(port, a_check(method="POST", headers=(("X-Colour", "red"),), body=b"\0\1"))
    request = site.requests[-1]
    assert (request.method, request.path, request.body) == ("POST", "/hello", b"\0\1")
    assert request.headers == {
        "host": f"127.0.0.1:{port}",
        "x-colour": "red",
        "content-length": "2",
    }


def test_check_expects_no_body_after_head(port: int) -> None:
    result = checked(port, a_check(method="HEAD"))
    assert (result["problem"], result["length"]) == (None, 0)


def test_check_reports_that_the_server_does_not_speak_http() -> None:
    with serving(saying(b"220 mail.example ESMTP\r\n")) as port:
        assert problem(port, a_check()) == r"b'220 mail.example ESMTP\r\n' instead of HTTP/1.1"


def test_check_reports_that_chunks_break_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(saying(head, b"5\r\nHello\r\n", b"8\r\nWor")) as port:
        message = problem(port, a_check())
    assert message == "a body that ends after 8 bytes, in the middle of a chunk"


def test_check_ends_within_its_timeout() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n"
    with serving(saying(head, b"Hello", then_wait=True)) as port:
        message = problem(port, a_check(timeout_s=0.3))
    assert message == "a body that breaks off after 5 bytes: timed out"
    with serving(saying(b"HTTP/1.1 200 OK\r\n", then_wait=True)) as port:
        message = problem(port, a_check(timeout_s=0.3))
    assert message == "broken HTTP/1.1 (it breaks off: timed out)"


def test_check_ends_a_regular_expression_that_takes_too_long() -> None:
    reply = Reply(body=b"a" * 60 + b"!")
    with serving(http1(Site({"/hello": reply}))) as port:
        message = problem(port, expecting("matches", "^(a+)+$", timeout_s=1.0))
    assert message == "a body in which '^(a+)+$' was searched for 1 s, without an end"


@pytest.mark.parametrize("protocol", ["h1", "h2", "grpc"])
def test_check_raises_if_nothing_listens(protocol: str) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        checked(port, a_check(protocol=protocol))
    with serving(saying()) as port, pytest.raises(OSError, match=r".+"):
        checked(port, a_check(protocol=protocol))
    with serving(saying(then_wait=True)) as port, pytest.raises(OSError, match="timed out"):
        checked(port, a_check(protocol=protocol, timeout_s=0.3))


def test_check_reports_a_load_tool_that_spoke_another_protocol() -> None:
    check = expecting("length", 13, protocol="h3", tls=True, argv=("tool", "url"), statuses=(200,))
    response = {"status": 200, "length": 13, "protocol": "h2"}
    assert check_by_tool(check, lambda _argv: response)["protocol"] == "h2"


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        ({"status": 200, "length": 13}, None),
        ({"status": 404, "length": 13}, "status 404 instead of 200"),
        ({"status": 200, "length": 12}, "a body of 12 bytes instead of 13"),
        ({"status": 200, "length": None}, "a body of unknown length instead of 13 bytes"),
        ({"status": None, "length": None}, "no response that the load tool could read over HTTP/3"),
    ],
)
def test_http3_is_checked_by_the_load_tool(
    statuses: dict[str, int | None], message: str | None
) -> None:
    check = expecting("length", 13, protocol="h3", tls=True, argv=("tool", "url"), statuses=(200,))
    commands = []
    result = check_by_tool(check, lambda argv: commands.append(argv) or statuses)
    assert commands == [("tool", "url")]
    assert result["problem"] == message
    assert result["protocol"] == ("h3" if statuses["status"] else None)
    assert (result["status"], result["length"]) == (statuses["status"], statuses["length"])
    assert (result["sha256"], result["encoding"]) == (None, None)
