"""An SSH server that sends more than was asked for, or hardly anything, or is where none may be."""

import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.core.errors import HostError, UnreachableError
from orchestrator.core.heartbeat import Claim, Heartbeat, StepTimedOutError
from orchestrator.transport.metered import BESIDE_BYTES
from orchestrator.transport.networks import ForbiddenHostError, check_literal
from orchestrator.transport.reach import reach_ssh_server
from orchestrator.transport.ssh import SshTransport, scan_host_key
from tests.support.sshd import LOOPBACK, start_sshd

MIB = 1024 * 1024


@contextmanager
def hostile(folder: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshTransport]:
    monkeypatch.setenv("PITWALL_TEST_HOSTILE", how)
    with (
        start_sshd(folder, "asyncssh", program="hostile_ssh.py") as server,
        SshTransport(server.address()) as transport,
    ):
        yield transport


def test_replies_longer_than_the_request_fill_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 requests of 32 KiB, each answered with 4 MiB: 128 MiB if all of it was kept."""
    with hostile(tmp_path, "long", monkeypatch) as transport:
        tracemalloc.start()
        with pytest.raises(UnreachableError, match="sent more than it was asked for"):
            transport.get("file", limit=MIB)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 5 * (MIB + BESIDE_BYTES)


def test_a_file_that_trickles_in_is_cut_off_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million bytes, one each half second, are six days."""
    claim = Claim(renew=lambda: True, lasts_s=60, since=time.monotonic())
    with hostile(tmp_path, "slow", monkeypatch) as transport, Heartbeat().keeping(claim):
        claim.begin("the look", 2.0)
        with pytest.raises(StepTimedOutError), claim.closing(transport.close):
            transport.get("file", limit=MIB)
        assert not transport.is_open()


@contextmanager
def sending(words: bytes, *, endless: bool) -> Iterator[int]:
    """A server on loopback that sends this to every client, perhaps without end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    connection.sendall(words)
                    while endless:
                        connection.sendall(b"x" * 65_536)
                    connection.recv(1)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "endless"),
    [
        (b"no line end", True),
        (b"SSH-2.0-x\r\n\xff\xff\xff\xf4" + b"\0" * 12, True),
        (b"SSH-2.0-x\r\n\x00\x10\x00\x04" + b"\0" * 12, True),
    ],
)
def test_a_handshake_takes_only_so_many_bytes(words: bytes, endless: bool) -> None:
    tracemalloc.start()
    with sending(words, endless=endless) as port, pytest.raises(HostError):
        scan_host_key("127.0.0.1", port, 20, networks=LOOPBACK)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * BESIDE_BYTES


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "fe80::1",
        "64:ff9b::7f00:1",
    ],
)
def test_hosts_are_not_at_loopback_or_link_local_addresses(address: str) -> None:
    for ask in (
        lambda: reach_ssh_server(address, 22, 1.0),
        lambda: scan_host_key(address, 22, 1.0),
        lambda: check_literal(address, []),
    ):
        with pytest.raises(ForbiddenHostError, match="PITWALL_HOST_NETWORKS"):
            ask()
    check_literal(address, ["0.0.0.0/0", "::/0"])


def test_a_name_is_checked_by_its_addresses() -> None:
    with pytest.raises(ForbiddenHostError, match="localhost"):
        scan_host_key("localhost", 22, 1.0)


def test_hosts_must_be_in_the_allowed_networks() -> None:
    check_literal("10.7.1.1", ["10.7.0.0/16"])
    check_literal("10.8.1.1", [])
    with pytest.raises(ForbiddenHostError):
        check_literal("10.8.1.1", ["10.7.0.0/16"])
    with pytest.raises(ForbiddenHostError):
        check_literal("127.0.0.1", ["10.7.0.0/16"])
