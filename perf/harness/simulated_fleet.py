"""A fleet of simulated hosts in the database, and the process that answers for them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from devstack.places import CHECKOUT
from devstack.processes import die_with_parent
from orchestrator.accounts.members import Member
from orchestrator.fleet.models import Host, HostState, HostTransport
from orchestrator.fleet.services import add_credential, save_profile
from orchestrator.transport.keys import generate_key
from perf.harness.simulated_hosts import KEY, POLLS, PORT
from perf.harness.sshd import write_private

_START_S = 30.0


@dataclass(slots=True, kw_only=True)
class SimulatedFleet:
    """`names`: of the hosts. `process` answers for all of them."""

    names: tuple[str, ...]
    process: subprocess.Popen[bytes]
    polls: Path

    def read_delays(self, since: float, until: float) -> list[float]:
        """Return how late the polls of this time (Unix seconds) were, in seconds."""
        rows = (line.split() for line in self.polls.read_text().splitlines())
        return [float(late) for at, late in rows if since <= float(at) < until]

    def stop(self) -> None:
        """End the process: no host answers any more."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def run_simulated_fleet(
    folder: Path, member: Member, count: int, quiet_s: float
) -> Iterator[SimulatedFleet]:
    """Yield `count` hosts that are ready; their process ends with the block."""
    folder.mkdir()
    key = generate_key()
    write_private(folder / KEY, key.private_openssh)
    process = subprocess.Popen(
        [sys.executable, "-m", "perf.harness.simulated_hosts", str(folder), str(quiet_s)],
        cwd=CHECKOUT,
        preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGKILL),
    )
    try:
        port = _await_port(folder / PORT, process)
        names = _add_hosts(member, count, port, key.public_openssh)
        yield SimulatedFleet(names=names, process=process, polls=folder / POLLS)
    finally:
        process.kill()
        process.wait()


def _await_port(path: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + _START_S
    while not (path.exists() and path.read_text()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the simulated hosts did not start")
        time.sleep(0.05)
    return int(path.read_text())


def _add_hosts(member: Member, count: int, port: int, host_key: str) -> tuple[str, ...]:
    profile = save_profile(member=member, slug="simulated", name="A simulated host")
    credential = add_credential(member=member, name="simulated")
    hosts = [
        Host(
            team=member.team,
            name=f"s{number:04}",
            profile=profile,
            credential=credential,
            transport=HostTransport.SSH,
            address=f"127.1.{number // 250}.{number % 250 + 1}",
            port=port,
            login="bench",
            host_key=host_key,
            state=HostState.READY,
        )
        for number in range(count)
    ]
    return tuple(host.name for host in Host.objects.bulk_create(hosts))
