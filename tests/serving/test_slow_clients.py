"""Clients that send or read slowly hold no thread of a real gunicorn, and are cut off."""

from collections.abc import Iterator

import psycopg
import pytest

from orchestrator.accounts.services import create_token
from tests.support.engine import own_database_url
from tests.support.factories import make_personas
from tests.support.served import IMPATIENT, Served, served

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = 50
THREADS = 2
#: The beginning of a form.
POST = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_SENT = {
    "line": b"GET /login HT",
    "headers": b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
    "body": POST + b"Content-Length: 100\r\n\r\nuser",
    "long body": POST + b"Content-Length: 9000000\r\n\r\nuser",
    "chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nus",
}


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with served(folder, config=IMPATIENT, threads=THREADS) as server:
        yield server


@pytest.mark.parametrize("sent", HALF_SENT.values(), ids=HALF_SENT)
def test_incomplete_requests_block_nobody_and_are_closed(server: Served, sent: bytes) -> None:
    slow = [server.connect(sent) for _ in range(SLOW)]
    for _ in range(5):
        assert server.ask("/login")[0].status == 200
    for each in slow:
        while each.recv(4096):
            pass
        each.close()
    server.wait_for_connections(0)
    assert server.ask("/login")[0].status == 200
    assert "Traceback" not in server.log.read_text()


def test_a_slow_request_gets_an_error_response(server: Served) -> None:
    with server.connect(HALF_SENT["body"]) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_earlier_bytes_do_not_extend_the_timeout(server: Served) -> None:
    """A form with a file, of which a thread reads most of the body before it has to wait."""
    head = POST + b"Cookie: csrftoken=" + 32 * b"a" + b"\r\nContent-Length: 9000000\r\n"
    head += b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    part = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
    with server.connect(head + part + 6_000_000 * b"a") as client:
        while client.recv(4096):
            pass
    server.wait_for_connections(0)


def test_a_body_that_trickles_is_cut_off(server: Served) -> None:
    with server.connect(POST + b"Content-Length: 1000000\r\n\r\n") as client:
        client.settimeout(0.05)
        answer = b""
        for _ in range(1200):
            try:
                answer = client.recv(4096)
                break
            except TimeoutError:
                client.sendall(b"a")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_silent_connections_are_closed(server: Served) -> None:
    assert server.connect().recv(1) == b""


def test_slow_readers_hold_no_thread_and_are_closed(server: Served) -> None:
    # So often that the answers are more than the kernel keeps.
    requests = 12 * b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    slow = [server.connect(requests, receive_buffer=2048) for _ in range(2 * THREADS)]
    for _ in range(5):
        assert server.ask("/login")[0].status == 200
    server.wait_for_connections(0)
    assert len(slow) == 2 * THREADS


def test_pipelined_requests_are_processed_in_order(server: Served) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    chunks = one.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked")
    chunks += b"\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    with server.connect(one + chunks + one + last) as client:
        received = b""
        while data := client.recv(4096):
            received += data
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"HTTP/1.1 405 ") == 1


def test_probes_answer_while_all_threads_are_busy(server: Served) -> None:
    personas = make_personas()
    token = create_token(member=personas.alice, name="ci").secret
    assert server.ask("/readyz")[0].status in (200, 503)
    with psycopg.connect(own_database_url()) as other:
        other.execute("LOCK TABLE runs_run IN ACCESS EXCLUSIVE MODE")
        busy = [server.send("/api/v1/runs", token=token) for _ in range(3 * THREADS)]
        for _ in range(3):
            assert server.ask("/healthz", timeout_s=20)[1] == b"alive\n"
            assert server.ask("/readyz", timeout_s=20)[0].status in (200, 503)
        assert not any(each.has_answer() for each in busy)
        other.rollback()
    assert {each.answer()[0].status for each in busy} == {200}
