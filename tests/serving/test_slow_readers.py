"""How long a thread waits for a client that reads its answer slowly, over real sockets."""

import socket
import threading
from typing import Any

import pytest

from orchestrator.serving import pace
from orchestrator.serving.connection import Connection
from orchestrator.serving.shares import Shares

ANSWER = 8 * 2**20


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read fast would be credit for hours."""
    monkeypatch.setattr(pace, "GRACE_S", 0.3)
    monkeypatch.setattr(pace, "LEAST_BYTES_A_SECOND", 1024)


def connect(shares: Shares, owner: str) -> tuple[Connection, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        client.connect(listener.getsockname())
        raw, address = listener.accept()
    connection = Connection(None, raw, address, listener, shares, owner)
    connection.sock.feed(b"", streamed=False)
    return connection, client


def test_a_client_that_stops_reading_is_cut_off() -> None:
    shares = Shares.for_threads(8)
    connection, client = connect(shares, "a")

    def read_half() -> None:
        left = ANSWER // 2
        while left > 0:
            left -= len(client.recv(left))

    reader = threading.Thread(target=read_half)
    reader.start()
    with client, pytest.raises(BrokenPipeError, match="too slowly"):
        connection.sock.sendall(bytes(ANSWER))
    reader.join()
    connection.close()
    assert (shares.slow.total, shares.outgoing.total) == (0, 0)


def test_one_client_leaves_threads_for_the_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(pace, "GRACE_S", 30.0)
    shares = Shares.for_threads(4)
    assert shares.slow.take("a")
    first, first_client = connect(shares, "a")
    with first_client, pytest.raises(BrokenPipeError, match="too many clients"):
        first.sock.sendall(bytes(ANSWER))
    first.close()
    second, second_client = connect(shares, "b")
    received: list[int] = []

    def read_all() -> None:
        while sum(received) < ANSWER:
            received.append(len(second_client.recv(2**20)))

    reader = threading.Thread(target=read_all)
    reader.start()
    second.sock.sendall(bytes(ANSWER))
    while not second.flush():
        pass
    reader.join()
    second.close()
    second_client.close()
    assert sum(received) == ANSWER
