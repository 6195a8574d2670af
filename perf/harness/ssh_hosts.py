"""Hosts to dispatch to: so many `sshd` of this machine, each with its own port, key and folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from devstack.processes import descendants
from orchestrator.transport.keys import KeyPair, generate_key

START_TIMEOUT_S = 20.0
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
#: The Python of the hosts, for Ansible's modules and for Pitwall's agent: the system's own.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable

# With SHLVL, bash takes itself for a nested shell and leaves out ~/.bashrc: what a developer's
# account does at each login is no part of what is compared.
CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
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
PrintMotd no
MaxStartups 500
MaxSessions 50
SetEnv SHLVL=1
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
    """One host as every contestant reaches it; `work_dir` is its own folder for files."""

    name: str
    port: int
    user: str
    host_key: str
    work_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All hosts, and the key that opens each of them."""

    hosts: tuple[SshHost, ...]
    client: KeyPair = field(repr=False)
    folder: Path

    @property
    def key_file(self) -> Path:
        return self.folder / "client_key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"


@contextlib.contextmanager
def running_fleet(folder: Path, count: int) -> Iterator[Fleet]:
    """`count` hosts; their servers and sessions end with the block."""
    if SSHD is None:
        raise RuntimeError("there is no sshd here: install openssh-server")
    client = generate_key()
    # Root's sshd needs a folder that only a service manager makes.
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as stack:
        hosts = tuple(
            stack.enter_context(_running_host(folder / f"h{number}", client, f"h{number}"))
            for number in range(1, count + 1)
        )
        fleet = Fleet(hosts=hosts, client=client, folder=folder)
        _write_private(fleet.key_file, client.private_openssh)
        lines = [f"[127.0.0.1]:{host.port} {host.host_key}" for host in hosts]
        fleet.known_hosts.write_text("\n".join(lines) + "\n")
        yield fleet


@contextlib.contextmanager
def _running_host(folder: Path, client: KeyPair, name: str) -> Iterator[SshHost]:
    (folder / "work").mkdir(parents=True)
    key = generate_key()
    _write_private(folder / "host_key", key.private_openssh)
    (folder / "authorized_keys").write_text(client.public_openssh + "\n")
    process, port = _start(folder)
    try:
        yield SshHost(
            name=name,
            port=port,
            user=pwd.getpwuid(os.getuid()).pw_name,
            host_key=key.public_openssh,
            work_dir=folder / "work",
        )
    finally:
        _stop(process)


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    port = _free_port()
    (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
    argv = [str(SSHD), "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return process, port
        time.sleep(0.02)
    process.kill()
    raise RuntimeError(f"sshd did not start: {(folder / 'log').read_text()[-1000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The listener and the sessions below it."""
    for pid in [process.pid, *descendants(process.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)
