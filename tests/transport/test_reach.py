"""Who answers at an address, and what is in the way where no SSH server does."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from orchestrator.transport.reach import (
    NoAnswerError,
    NoSuchNameError,
    NotSshError,
    PortRefusedError,
    reach_ssh_server,
)
from tests.support.sshd import LOOPBACK


@contextlib.contextmanager
def _serve_banner(words: bytes | None) -> Iterator[int]:
    """A server that sends this to every client, or nothing (None), and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with caller:
                if words is None:
                    caller.settimeout(5)
                    caller.recv(1)
                else:
                    caller.sendall(words)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_an_ssh_server_is_recognised_even_after_a_banner() -> None:
    with _serve_banner(b"Welcome\r\nSSH-2.0-Tested\r\n") as port:
        address = reach_ssh_server("localhost", port, 5.0, networks=LOOPBACK)
    assert (address.ip, address.server) == ("127.0.0.1", "SSH-2.0-Tested")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "it sent 'HTTP/1.1 400"),
        (b"", "nothing"),
        (None, "nothing"),
    ],
)
def test_another_server_is_recognised(words: bytes | None, message: str) -> None:
    with _serve_banner(words) as port, pytest.raises(NotSshError, match=message):
        reach_ssh_server("127.0.0.1", port, 0.3, networks=LOOPBACK)


def test_a_wrong_name_and_a_closed_port_are_distinguished() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(PortRefusedError, match=f"127.0.0.1:{port} refused"):
        reach_ssh_server("127.0.0.1", port, 5.0, networks=LOOPBACK)
    with pytest.raises(NoSuchNameError, match=r"no-such-host\.invalid has no address"):
        reach_ssh_server("no-such-host.invalid", 22, 5.0)


def test_a_silent_address_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(address: object, timeout: float) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", nobody)
    with pytest.raises(NoAnswerError, match=r"10\.1\.2\.3:22 did not answer within 6 s"):
        reach_ssh_server("10.1.2.3", 22, 6.0)
