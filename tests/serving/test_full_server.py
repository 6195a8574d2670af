"""What a process with too much to do answers, and that one client cannot use all of it up."""

import http.client
import resource
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from orchestrator.accounts.services import create_token
from tests.support.engine import own_database_url
from tests.support.factories import make_personas
from tests.support.served import FEW_CONNECTIONS, SMALL, STUCK, Served, served

pytestmark = pytest.mark.django_db(transaction=True)

PROXIED = {"PITWALL_TRUSTED_PROXIES": "1"}
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n5\r\nus"


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with served(folder, config=SMALL, threads=2, environment=PROXIED) as server:
        yield server


def head(method: str, path: str, client: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Forwarded-For: {client}"]
    return "".join(f"{line}\r\n" for line in [*lines, "X-Forwarded-Proto: http", *more]).encode()


def read_response(client: socket.socket) -> http.client.HTTPResponse:
    with client, closing(http.client.HTTPResponse(client)) as answer:
        answer.begin()
        answer.read()
        return answer


def test_the_queue_is_limited_for_each_client_and_in_total(server: Served) -> None:
    token = create_token(member=make_personas().alice, name="ci").secret
    with psycopg.connect(own_database_url()) as other:
        other.execute("LOCK TABLE runs_run IN ACCESS EXCLUSIVE MODE")

        def ask(client: str) -> socket.socket:
            bearer = f"Authorization: Bearer {token}"
            return server.connect(head("GET", "/api/v1/runs", client, bearer) + b"\r\n")

        first = [ask("198.51.100.1"), ask("198.51.100.1")]
        refused = read_response(ask("198.51.100.1"))
        second = [ask("198.51.100.2"), ask("198.51.100.2")]
        full = read_response(ask("198.51.100.3"))
        line = head("GET", "/login", "198.51.100.3", "Accept: text/html,*/*;q=0.8")
        page = read_response(server.connect(line + b"\r\n"))
        other.rollback()
    kinds = [each.headers["Content-Type"].partition(";")[0] for each in (refused, full, page)]
    assert kinds == ["application/problem+json", "application/problem+json", "text/html"]
    for answer in (refused, full, page):
        assert (answer.status, answer.headers["Connection"]) == (503, "close")
        assert int(answer.headers["Retry-After"]) > 0
    assert {read_response(each).status for each in first + second} == {200}


def test_waiting_probes_are_limited(server: Served) -> None:
    with psycopg.connect(own_database_url()) as other:
        other.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
        waiting = [
            server.connect(head("GET", "/readyz", "198.51.100.1") + b"\r\n") for _ in range(4)
        ]
        refused = server.connect(head("GET", "/readyz", "198.51.100.1") + b"\r\n")
        assert read_response(refused).headers["Retry-After"] is not None
        waiting += [
            server.connect(head("GET", "/readyz", "198.51.100.2") + b"\r\n") for _ in range(4)
        ]
        refused = server.connect(head("GET", "/readyz", "198.51.100.3") + b"\r\n")
        assert read_response(refused).headers["Retry-After"] is not None
        # Strangers take no place from the health check of this machine.
        waiting.append(server.connect(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
        other.rollback()
    assert {read_response(each).headers["Retry-After"] for each in waiting} == {None}


def test_a_probe_with_a_body_that_never_comes_delays_no_other(server: Served) -> None:
    with server.connect(head("POST", "/healthz", "198.51.100.1") + CHUNKS) as stalled:
        stalled.recv(1, socket.MSG_PEEK)
        answered = server.connect(head("GET", "/healthz", "198.51.100.2") + b"\r\n")
        assert read_response(answered).status == 200
        # The answer may arrive in parts.
        first = http.client.HTTPResponse(stalled)
        first.begin()
        first.read()
        stalled.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            stalled.recv(1)


@pytest.mark.parametrize("sent", [b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /", b""])
def test_a_full_process_makes_room_for_a_new_connection(tmp_path: Path, sent: bytes) -> None:
    """Whether those that hold the places are kept alive, half sent or silent."""
    with served(tmp_path, config=FEW_CONNECTIONS) as server:
        holding = [server.connect(sent) for _ in range(4)]
        for _ in range(3):
            assert server.ask("/healthz")[1] == b"alive\n"
        for each in holding:
            each.close()


def test_the_bytes_of_requests_are_limited(server: Served) -> None:
    lines = head("POST", "/login", "198.51.100.1", "Content-Length: 300000")
    assert read_response(server.connect(lines + b"\r\n" + 300_000 * b"a")).status == 503
    assert (
        read_response(server.connect(head("GET", "/login", "198.51.100.1") + b"\r\n")).status == 200
    )


def test_an_upload_that_waits_too_long_gets_an_error_response(server: Served) -> None:
    with server.connect(head("POST", "/login", "198.51.100.1") + CHUNKS):
        with server.connect(head("POST", "/login", "198.51.100.1") + CHUNKS) as second:
            answer = read_response(second)
        assert (answer.status, answer.headers["Connection"]) == (503, "close")
        assert int(answer.headers["Retry-After"]) > 0


def test_a_short_body_after_expect_needs_no_thread_until_it_arrives(
    server: Served,
) -> None:
    lines = ("Content-Length: 4", "Expect: 100-continue", "Connection: close")
    clients = []
    for _ in range(4):
        client = server.connect(head("POST", "/login", "198.51.100.1", *lines) + b"\r\n")
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        clients.append(client)
    assert (
        read_response(server.connect(head("GET", "/login", "198.51.100.1") + b"\r\n")).status == 200
    )
    received = b""
    with clients[0] as client:
        client.sendall(b"user")
        while data := client.recv(4096):
            received += data
    assert received.startswith(b"HTTP/1.1 403 ")
    assert b"100 Continue" not in received
    for client in clients[1:]:
        client.close()


def test_a_process_without_file_descriptors_recovers(server: Served) -> None:
    worker = server.worker()
    before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    server.wait_for_connections(0)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (10, before[1]))
    refused = [server.connect() for _ in range(3)]
    server.wait_for_log("No connection can be accepted")
    resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
    server.wait_for_connections(3)
    clients = [server.connect() for _ in range(10)]
    server.wait_for_connections(13)
    for client in refused + clients:
        client.close()
    server.wait_for_connections(0)


def test_a_process_whose_threads_all_hang_is_replaced(tmp_path: Path) -> None:
    token = create_token(member=make_personas().alice, name="ci").secret
    with (
        served(tmp_path, config=STUCK, threads=2) as server,
        psycopg.connect(own_database_url()) as other,
    ):
        other.execute("LOCK TABLE runs_run IN ACCESS EXCLUSIVE MODE")
        first = server.worker()
        hanging = [server.send("/api/v1/runs", token=token) for _ in range(2)]
        server.wait_for_log("all of its 2 threads have hung")
        for each in hanging:
            assert each.client.recv(1) == b""
        assert server.ask("/healthz")[1] == b"alive\n"
        assert server.worker() != first
        other.rollback()
