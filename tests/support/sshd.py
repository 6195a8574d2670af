"""A real SSH server on a free loopback port, as the user who runs the tests.

    with start_sshd(tmp_path) as server:
        SshTransport(server.address())

It is the system's `sshd`; where there is none, or with PITWALL_TEST_SSH_SERVER=asyncssh, one made
with asyncssh. `from tests.support.sshd import sshd` brings the fixture.
"""

import contextlib
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from orchestrator.transport.address import SshAddress
from orchestrator.transport.keys import KeyPair, generate_key, parse_private_key
from tests.support.programs import find_program

#: Where the hosts of tests may be.
LOOPBACK = ("127.0.0.0/8", "::1")
_START_TIMEOUT_S = 20
_STARTS = 5

# The login's home may be the developer's own: nothing is read from it or written to it. With SHLVL,
# bash takes itself for a nested shell and leaves out ~/.bashrc, whose programs may hold locks: one
# that a test kills would make all later logins wait for it.
_SSHD_CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {folder}/host_key
HostKey {folder}/other_host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
PermitTTY no
UseDNS no
MaxStartups 200
MaxSessions 50
SetEnv SHLVL=1
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshServer:
    """A running server. `home` is where its logins start; `work_dir` is a folder for tests.

    It has two host keys: `host_key` is an ed25519 one, `other_host_key` an ECDSA one.
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

    def address(self, **changes: object) -> SshAddress:
        """What it takes to log in, with what a test wants otherwise."""
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


def new_server_keys() -> ServerKeys:
    return ServerKeys(host=generate_key(), other_host=_ecdsa_key(), client=generate_key())


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[SshServer]:
    """A server for one test."""
    with start_sshd(tmp_path) as server:
        yield server


def server_kinds() -> list[str]:
    """The servers that can be started here; the first is the one that is used by default."""
    if os.environ.get("PITWALL_TEST_SSH_SERVER") == "asyncssh" or sshd_program() is None:
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
    start = _start_sshd if kind == "sshd" else partial(_start_asyncssh, program)
    process, port = start(folder, keys)
    try:
        yield _server(kind, process, port, folder, keys)
    finally:
        _stop(kind, process)


def _server(
    kind: str, process: subprocess.Popen[str], port: int, folder: Path, keys: ServerKeys
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
    )


def _stop(kind: str, process: subprocess.Popen[str]) -> None:
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


# sshd


def sshd_program() -> str | None:
    found = find_program("sshd")
    return str(found) if found else None


def _start_sshd(folder: Path, keys: ServerKeys) -> tuple[subprocess.Popen[str], int]:
    for _ in range(_STARTS):
        port = _free_port()
        write_sshd_files(folder, keys, "127.0.0.1", port)
        process = _spawn(sshd_command(folder), folder)
        if _answers(process, port):
            return process, port
        process.kill()
        process.communicate()
    raise RuntimeError(f"sshd did not start: {(folder / 'log').read_text()}")


def write_sshd_files(folder: Path, keys: ServerKeys, address: str, port: int) -> None:
    """All that the command of `sshd_command` reads."""
    (folder / "authorized_keys").write_text(keys.client.public_openssh + "\n")
    for name, key in (("host_key", keys.host), ("other_host_key", keys.other_host)):
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(key.private_openssh)
    config = _SSHD_CONFIG.format(address=address, port=port, folder=folder)
    (folder / "sshd_config").write_text(config)
    _make_privilege_separation_folder(folder)


def sshd_command(folder: Path) -> list[str]:
    # Full paths, because sshd changes to / and calls itself again for each connection.
    files = ["-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
    return [str(sshd_program()), "-D", *files]


def _make_privilege_separation_folder(folder: Path) -> None:
    """Root's sshd needs a folder that only a service manager makes."""
    check = [str(sshd_program()), "-t", "-f", str(folder / "sshd_config")]
    said = subprocess.run(check, capture_output=True, text=True, check=False).stderr
    missing = re.search(r"Missing privilege separation directory: (\S+)", said)
    if missing:
        Path(missing[1]).mkdir(mode=0o755, parents=True, exist_ok=True)


def _answers(process: subprocess.Popen[str], port: int) -> bool:
    give_up = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < give_up:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as sock:
            if sock.recv(4) == b"SSH-":
                # Another program may have taken the port between our look and sshd's start.
                return process.poll() is None
        time.sleep(0.02)
    return False


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _drop_sshd_sessions(listener_pid: int) -> None:
    """Kill what serves connections; the commands that run in them live on."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listing.stdout.splitlines()]
    parents = {listener_pid}
    for _ in range(2):  # one process with, one without privileges
        found = {
            int(pid)
            for pid, parent, name in rows
            if int(parent) in parents and Path(name.split()[0].rstrip(":")).name.startswith("sshd")
        }
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        parents = found


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
