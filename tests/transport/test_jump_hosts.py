"""Connections through jump hosts, each a real SSH server."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import HostKeyMismatchError, InvalidRequestError, UnreachableError
from orchestrator.transport.address import HostKey, JumpHost, SshAddress
from orchestrator.transport.keys import generate_key
from orchestrator.transport.networks import ForbiddenHostError
from orchestrator.transport.reach import reach_ssh_server
from orchestrator.transport.ssh import SshTransport, scan_host_key
from tests.support.programs import tool
from tests.support.sshd import LOOPBACK, SshServer, start_sshd
from tests.support.waiting import wait_until

KEY = generate_key().public_openssh


@pytest.fixture(scope="module")
def bastion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    tool("sshd")
    with start_sshd(tmp_path_factory.mktemp("bastion"), kind="sshd") as started:
        yield started


@pytest.fixture(scope="module")
def inner(bastion: SshServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A host behind the bastion; one key logs in to both."""
    with start_sshd(tmp_path_factory.mktemp("inner"), kind="sshd") as started:
        bastion.authorize(started.client_public_key)
        yield started


def jump(server: SshServer, **changes: str) -> JumpHost:
    line = f"{server.user}@{server.host}:{server.port} {changes.get('key', server.host_key)}"
    return JumpHost.parse(line)


def through(inner: SshServer, *jumps: JumpHost, **changes: object) -> SshAddress:
    return inner.address(jumps=jumps, **changes)


def test_commands_and_files_pass_a_chain_of_jump_hosts(
    bastion: SshServer, inner: SshServer, tmp_path: Path
) -> None:
    address = through(inner, jump(bastion), jump(bastion), work_dir=str(tmp_path / "work"))
    large = os.urandom(3_000_000)
    with SshTransport(address) as transport:
        assert transport.run(["echo", "in"], timeout_s=60).stdout == b"in\n"
        transport.put(large, "file")
        assert transport.get("file", limit=len(large)) == large
        done = transport.run(["cat", "file"], timeout_s=60)
        assert done.stdout == large
    assert (tmp_path / "work/file").read_bytes() == large


def test_a_closed_connection_leaves_nothing_of_its_jump_hosts(
    bastion: SshServer, inner: SshServer
) -> None:
    def count() -> tuple[int, int]:
        return len(os.listdir("/dev/fd")), threading.active_count()

    before = count()
    SshTransport(through(inner, jump(bastion))).close()
    wait_until(lambda: count() <= before, f"{count()} is more than {before}")


def test_a_connection_whose_jump_host_is_lost_is_detected(
    bastion: SshServer, inner: SshServer
) -> None:
    with SshTransport(through(inner, jump(bastion))) as transport:
        bastion.drop_connections()
        with pytest.raises(UnreachableError, match="was lost"):
            transport.run(["echo"], timeout_s=60)


def test_each_jump_host_has_to_show_its_pinned_key(bastion: SshServer, inner: SshServer) -> None:
    with pytest.raises(HostKeyMismatchError, match=f"127.0.0.1:{bastion.port} showed"):
        SshTransport(through(inner, jump(bastion, key=KEY)))
    with pytest.raises(HostKeyMismatchError, match=f"127.0.0.1:{bastion.port} showed"):
        SshTransport(through(inner, jump(bastion), jump(bastion, key=KEY)))
    with pytest.raises(HostKeyMismatchError, match=f"127.0.0.1:{inner.port} showed"):
        SshTransport(through(inner, jump(bastion), host_key=KEY))


def test_a_host_that_the_jump_host_cannot_reach_is_reported(
    bastion: SshServer, inner: SshServer
) -> None:
    with socket.socket() as bound_only:
        bound_only.bind(("127.0.0.1", 0))
        port = bound_only.getsockname()[1]
        with pytest.raises(UnreachableError, match=r"from the jump host 127\.0\.0\.1") as caught:
            SshTransport(through(inner, jump(bastion), port=port))
    assert caught.value.transient
    assert "AllowTcpForwarding" in str(caught.value)


def test_a_host_behind_a_jump_host_is_checked_before_the_login(
    bastion: SshServer, inner: SshServer
) -> None:
    route = {"jumps": (jump(bastion),), "private_key": inner.client_private_key}
    reached = reach_ssh_server(inner.host, inner.port, 20, networks=LOOPBACK, **route)  # type: ignore[arg-type]
    assert reached.server.startswith("SSH-2.0-")
    shown = scan_host_key(inner.host, inner.port, 20, networks=LOOPBACK, **route)  # type: ignore[arg-type]
    assert shown == HostKey.parse(inner.host_key)


@pytest.mark.parametrize(
    ("host", "networks", "words"),
    [
        ("127.0.0.1", (), "Hosts may not be at 127.0.0.1"),
        ("169.254.169.254", LOOPBACK, "Hosts may not be at 169.254.169.254"),
        ("localhost", LOOPBACK, "give the IP address of localhost"),
    ],
)
def test_addresses_behind_a_jump_host_follow_the_rules_of_hosts(
    host: str, networks: tuple[str, ...], words: str, bastion: SshServer, inner: SshServer
) -> None:
    with pytest.raises(ForbiddenHostError, match=words):
        SshTransport(through(inner, jump(bastion), host=host, networks=networks))


def test_the_address_of_a_jump_host_follows_them_as_well(
    bastion: SshServer, inner: SshServer
) -> None:
    with pytest.raises(ForbiddenHostError, match=r"Hosts may not be at 127\.0\.0\.1"):
        SshTransport(through(inner, jump(bastion), host="10.1.2.3", networks=()))


@pytest.mark.parametrize(
    ("line", "host", "port"),
    [
        ("ada@bastion.example KEY", "bastion.example", 22),
        ("  ada@bastion:2222 KEY comment ", "bastion", 2222),
        ("ada@[2001:db8::7]:2222 KEY", "2001:db8::7", 2222),
    ],
)
def test_a_line_of_a_jump_host_is_parsed(line: str, host: str, port: int) -> None:
    parsed = JumpHost.parse(line.replace("KEY", KEY))
    assert (parsed.user, parsed.host, parsed.port) == ("ada", host, port)
    assert parsed.host_key == " ".join(KEY.split()[:2])
    assert JumpHost.parse(parsed.line) == parsed


@pytest.mark.parametrize(
    "line",
    [
        "",
        "bastion",
        "ada@bastion",
        "bastion KEY",
        "ada@bastion:0 KEY",
        "ada@bastion:65536 KEY",
        "-o@bastion KEY",
        "ada@-bastion KEY",
        "ada@2001:db8::7 KEY",
        "ada@bastion ssh-ed25519 AAAA",
    ],
)
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(InvalidRequestError):
        JumpHost.parse(line.replace("KEY", KEY))
