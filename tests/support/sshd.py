"""A real SSH server on a free loopback port, as the user who runs the tests.

    with start_sshd(tmp_path) as server:
        SshTransport(server.address())

It is the system's `sshd`. If there is none, or with PITWALL_TEST_SSH_SERVER=asyncssh, it is a
server based on asyncssh. `from tests.support.sshd import sshd` provides the fixture.
"""

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from devstack.programs import find_program
from orchestrator.transport.address import SshAddress
from orchestrator.transport.keys import KeyPair, generate_key, parse_private_key
from perf.harness import sshd as harness
from tests.support.programs import missing

#: Networks of the hosts of tests.
LOOPBACK = ("127.0.0.0/8", "::1")
_START_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SshServer:
    """A running server. `home` is where its logins start; `work_dir` is a folder for tests.

    It has two host keys: `host_key` is an ed25519 one, `other_host_key` an ECDSA one. After `stop`
    nothing listens on its port until `start`; programs that logins started continue.
    """

    kind: str
    host: str
    port: int
    user: str
    host_key: str
    other_host_key: str
    client_private_key: str = field(repr=False)
    client_public_key: str
    home: Path
    work_dir: Path
    drop_connections: Callable[[], None] = field(repr=False)
    stop: Callable[[], None] = field(repr=False)
    start: Callable[[], None] = field(repr=False)

    def authorize(self, public_key: str) -> None:
        """Let the owner of this key log in, as the command on the page of the checks does."""
        if self.kind != "sshd":
            missing("sshd")
        with (self.work_dir.parent / "ssh-server" / "authorized_keys").open("a") as file:
            file.write(f"{public_key}\n")

    def address(self, **changes: object) -> SshAddress:
        """Return the login data, with the changes of a test."""
        right: dict[str, object] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "host_key": self.host_key,
            "private_key": self.client_private_key,
            "work_dir": str(self.work_dir),
            "networks": LOOPBACK,
        }
        return SshAddress(**(right | changes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKeys:
    host: KeyPair
    other_host: KeyPair
    client: KeyPair

    @property
    def files(self) -> dict[str, KeyPair]:
        """Return the keys of the server, by the name of their file."""
        return {"host_key": self.host, "other_host_key": self.other_host}


def new_server_keys() -> ServerKeys:
    return ServerKeys(host=generate_key(), other_host=_ecdsa_key(), client=generate_key())


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[SshServer]:
    """A server for one test."""
    with start_sshd(tmp_path) as server:
        yield server


def server_kinds() -> list[str]:
    """Return the servers that can be started here; the first is the default."""
    if os.environ.get("PITWALL_TEST_SSH_SERVER") == "asyncssh" or find_program("sshd") is None:
        return ["asyncssh"]
    return ["sshd", "asyncssh"]


@contextlib.contextmanager
def start_sshd(
    tmp_path: Path, kind: str | None = None, program: str = "asyncssh_server.py"
) -> Iterator[SshServer]:
    """Start a server that keeps its files below `tmp_path`, and stop it at the end.

    `program`: the one with asyncssh, of the folder of this file.
    """
    kind = kind or server_kinds()[0]
    folder = tmp_path / "ssh-server"
    folder.mkdir()
    keys = new_server_keys()
    process: subprocess.Popen[Any]
    if kind == "sshd":
        process, port = harness.start_sshd(folder, keys.files, keys.client)
    else:
        process, port = _start_asyncssh(program, folder, keys)
    running = [process]

    def stop() -> None:
        _stop(kind, running.pop())

    def start() -> None:
        if kind != "sshd":
            missing("sshd")
        running.append(harness.restart_sshd(folder, port))

    try:
        yield _server(kind, process, port, folder, keys, stop, start)
    finally:
        for each in running:
            _stop(kind, each)


def _server(
    kind: str,
    process: subprocess.Popen[Any],
    port: int,
    folder: Path,
    keys: ServerKeys,
    stop: Callable[[], None],
    start: Callable[[], None],
) -> SshServer:
    account = pwd.getpwuid(os.getuid())
    drop = _drop_sshd_sessions if kind == "sshd" else _drop_asyncssh_connections
    return SshServer(
        kind=kind,
        host="127.0.0.1",
        port=port,
        user=account.pw_name,
        host_key=keys.host.public_openssh,
        other_host_key=keys.other_host.public_openssh,
        client_private_key=keys.client.private_openssh,
        client_public_key=keys.client.public_openssh,
        home=Path(account.pw_dir) if kind == "sshd" else folder,
        work_dir=folder.parent / "ssh-work",
        drop_connections=lambda: drop(process.pid),
        stop=stop,
        start=start,
    )


def _stop(kind: str, process: subprocess.Popen[Any]) -> None:
    if kind == "sshd":
        _drop_sshd_sessions(process.pid)
    process.terminate()
    try:
        process.wait(_START_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()


def _ecdsa_key() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    pem = key.private_bytes(*form, serialization.NoEncryption())
    return parse_private_key(pem.decode())


def _drop_sshd_sessions(listener_pid: int) -> None:
    """Kill the processes of connections; the commands in them continue."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listing.stdout.splitlines()]
    parents = {listener_pid}
    for _ in range(2):  # one process with, one without privileges
        children = {
            int(pid)
            for pid, parent, name in rows
            if int(parent) in parents and Path(name.split()[0].rstrip(":")).name.startswith("sshd")
        }
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        parents = children


# asyncssh


def _start_asyncssh(
    program: str, folder: Path, keys: ServerKeys
) -> tuple[subprocess.Popen[str], int]:
    path = Path(__file__).with_name(program)
    process = _spawn([sys.executable, "-W", "error", str(path)], folder)
    assert process.stdin is not None
    assert process.stdout is not None
    user = pwd.getpwuid(os.getuid()).pw_name
    config = {
        "host_keys": [keys.host.private_openssh, keys.other_host.private_openssh],
        "client_key": keys.client.public_openssh,
        "user": user,
    }
    process.stdin.write(json.dumps(config))
    process.stdin.close()
    process.stdin = None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the asyncssh server did not start: {process.communicate()[1]}")
    return process, int(line)


def _drop_asyncssh_connections(server_pid: int) -> None:
    os.kill(server_pid, signal.SIGUSR1)


def _spawn(argv: list[str], folder: Path) -> subprocess.Popen[str]:
    with (folder / "server.err").open("w") as errors:
        return subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
