"""The relay that git connects through ends connections that hold a slot and bring nothing."""

import socket
import threading
import time

import pytest

from orchestrator.benchmarks import remotes
from orchestrator.benchmarks.remotes import ServerAddress, open_route
from orchestrator.transport.relay import Relay


def serve_drops(server: socket.socket, most: int = 100_000) -> None:
    """One byte now and then, as long as somebody takes them."""
    connection, _ = server.accept()
    with connection:
        try:
            for _ in range(most):
                connection.sendall(b"x")
                time.sleep(0.02)
        except OSError:
            return


def test_a_server_that_sends_drops_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve_drops, args=[server], daemon=True).start()
        port = server.getsockname()[1]
        with (
            Relay("127.0.0.1", port, ["127.0.0.1"], socks=False, slow_s=0.5) as relay,
            socket.create_connection(("127.0.0.1", relay.port), 60) as client,
        ):
            while client.recv(1024):
                pass
            assert relay.problem == "less than 1000 bytes a second were sent for 0.5 s"


def test_ssh_is_not_cut_off_while_little_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """While git resolves deltas, keepalives are all that is moved."""
    monkeypatch.setattr(remotes, "SLOW_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve_drops, args=[server, 30], daemon=True).start()
        place = ServerAddress("ssh", "127.0.0.1", server.getsockname()[1])
        with open_route(place, ["127.0.0.0/8"], ssh_options=()) as way:
            assert way.relay is not None
            with socket.create_connection(("127.0.0.1", way.relay.port), 60) as client:
                received = b""
                while data := client.recv(1024):
                    received += data
            assert (received, way.relay.problem) == (b"x" * 30, "")
