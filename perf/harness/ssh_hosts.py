"""Hosts to dispatch to: several `sshd` of this machine, each with its own port, key and folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from devstack.processes import find_descendants
from devstack.programs import find_program
from orchestrator.transport.keys import KeyPair, generate_key
from perf.harness.sshd import start_sshd, write_private

#: The Python of the hosts, for Ansible's modules and for Pitwall's agent: the system's own.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
    """One host as every candidate reaches it; `work_dir` is its folder for files."""

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
def run_fleet(folder: Path, count: int) -> Iterator[Fleet]:
    """Yield `count` hosts; their servers and sessions end with the block."""
    if find_program("sshd") is None:
        raise RuntimeError("there is no sshd here: install openssh-server")
    client = generate_key()
    with contextlib.ExitStack() as stack:
        hosts = tuple(
            stack.enter_context(_running_host(folder / f"h{number}", client, f"h{number}"))
            for number in range(1, count + 1)
        )
        fleet = Fleet(hosts=hosts, client=client, folder=folder)
        write_private(fleet.key_file, client.private_openssh)
        lines = [f"[127.0.0.1]:{host.port} {host.host_key}" for host in hosts]
        fleet.known_hosts.write_text("\n".join(lines) + "\n")
        yield fleet


@contextlib.contextmanager
def _running_host(folder: Path, client: KeyPair, name: str) -> Iterator[SshHost]:
    (folder / "work").mkdir(parents=True)
    key = generate_key()
    process, port = start_sshd(folder, {"host_key": key}, client)
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


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the listener and the sessions below it."""
    for pid in [process.pid, *find_descendants(process.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
