"""Real hosts for tests: each has an address, processes, a name and an sshd of its own.

    with run_hosts(tmp_path, count=3) as hosts:
        hosts[0].cut()

A host is a network namespace with a PID and a UTS namespace in it, joined to this machine by a
bridge. It shares the file system, so that a test reads its work directory directly. The test is
skipped if namespaces cannot be created.
"""

import contextlib
import os
import re
import signal
import socket
import string
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devstack.processes import Child, Command, spawn
from devstack.programs import find_program
from orchestrator.transport.address import SshAddress
from perf.harness.sshd import build_sshd_command, write_sshd_files
from tests.support.bridge import Network, NoNamespaces, ip, new_network
from tests.support.journals import StepJournal, read_journals
from tests.support.proc import command_line, innermost_pid, kill, read_name, read_pid_namespace
from tests.support.programs import missing
from tests.support.sshd import (
    ServerKeys,
    new_server_keys,
)
from tests.support.waiting import wait_until

_PATIENCE_S = 60
# The first process of a host: it kills nothing, and leaves no zombie of an orphan.
_INIT = """\
cd {folder}/kernel
for file in */* */*/*; do test -d $file || mount --bind $file /proc/sys/$file; done
hostname {name}
exec env --ignore-signal=CHLD sleep infinity
"""


@dataclass(slots=True, kw_only=True)
class NamespaceHost:
    """A machine. `user`, `host_key` and `client_private_key` are its login data."""

    name: str
    address: str
    port: int = 22
    user: str = "root"
    host_key: str
    client_private_key: str = field(repr=False)
    work_dir: Path
    folder: Path = field(repr=False)
    network: Network = field(repr=False)
    _machine: Child | None = field(default=None, repr=False)
    _init: int = field(default=0, repr=False)
    _pid_namespace: str = field(default="", repr=False)
    _sshds: list[Child] = field(default_factory=list, repr=False)

    @property
    def python(self) -> str:
        """The Python command to enter in Pitwall."""
        own = self.folder / "python"
        return str(own) if own.exists() else "python3"

    def login(self) -> SshAddress:
        return SshAddress(
            host=self.address,
            port=self.port,
            user=self.user,
            host_key=self.host_key,
            private_key=self.client_private_key,
            work_dir=str(self.work_dir),
            networks=("198.18.0.0/15",),
        )

    def power_on(self) -> None:
        """Start a machine with an sshd that answers. Raise NoNamespaces if that is impossible."""
        forget_kernel(self.folder)
        namespace = self.network.namespace(self.name)
        self._machine = self._spawn(
            "machine",
            *("nsenter", f"--net=/run/netns/{namespace}"),
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"),
            *("sh", "-c", _INIT.format(name=self.name, folder=self.folder)),
        )
        wait_until(lambda: read_name(self._find_init()) == "sleep")
        self._pid_namespace = read_pid_namespace(self._init)
        self.fix()
        self.start_sshd()

    def power_off(self) -> None:
        """End all processes without notice to any peer: the cable is pulled before."""
        self.cut()
        if self._machine is not None:
            # A PID namespace ends with its first process, and unshare reaps that one last.
            kill(self._init)
            self._machine.process.wait(_PATIENCE_S)
        for child in self._sshds:
            child.kill_group()
        self._machine, self._sshds = None, []

    def reboot(self) -> None:
        self.power_off()
        self.power_on()

    def cut(self) -> None:
        ip("link", "set", self.network.link(self.name), "down")

    def fix(self) -> None:
        ip("link", "set", self.network.link(self.name), "up")

    def start_sshd(self) -> None:
        inside = ("nsenter", f"--target={self._init}", "--mount", "--uts", "--net", "--pid")
        self._sshds.append(self._spawn("sshd", *inside, *build_sshd_command(self.folder)))
        wait_until(self.answers)

    def kill_sshd(self) -> None:
        """Kill the server and its connections; the commands in them continue."""

        def left() -> list[int]:
            return [pid for pid in self._pids() if read_name(pid).startswith("sshd")]

        for pid in left():
            kill(pid)
        wait_until(lambda: not left())

    def processes(self) -> list[str]:
        """Return outer pid and command line of all but the host's init and its sshd."""
        processes = [(pid, read_name(pid)) for pid in self._pids() if pid != self._init]
        return [
            f"{pid} {command_line(pid) or name}"
            for pid, name in processes
            if name and not name.startswith("sshd")
        ]

    def kill_process(self, pid: int) -> None:
        """`kill -9` of the process with this number on the host."""
        (outer_pid,) = [ours for ours in self._pids() if innermost_pid(ours) == pid]
        kill(outer_pid)

    def swappiness(self) -> str:
        """The host's own value of a kernel setting; 60 if it is not tuned."""
        return (self.folder / "kernel/vm/swappiness").read_text().strip()

    def journals(self) -> list[StepJournal]:
        return read_journals(self.work_dir)

    def fill_disk(self) -> None:
        """Fill the last block; for a fleet with `disk_bytes`."""
        assert self.work_dir.is_mount(), "this would fill the disk of the machine"
        with (self.work_dir / "filler").open("wb", buffering=0) as filler:
            for size in (2**20, 2**12):
                with contextlib.suppress(OSError):
                    while filler.write(bytes(size)) == size:
                        pass

    def free_disk(self) -> None:
        (self.work_dir / "filler").unlink()

    def shift_clock(self, seconds: int) -> None:
        """Shift the time that Python programs of the host read from now on; for `clocks=True`."""
        set_clock(self.folder / "clock", seconds)

    def _spawn(self, name: str, *argv: str) -> Child:
        log = self.folder / f"{name}.log"
        command = Command(name=name, argv=argv, env=os.environ, cwd=self.folder, log=log)
        return spawn(command, death_signal=signal.SIGKILL)

    def _find_init(self) -> int:
        assert self._machine is not None
        if self._machine.status() is not None:
            raise NoNamespaces((self.folder / "machine.log").read_text().strip())
        children = Path(f"/proc/{self._machine.pid}/task/{self._machine.pid}/children")
        self._init = int(children.read_text().strip() or 0)
        return self._init

    def answers(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((self.address, self.port), 1) as connection,
        ):
            return connection.recv(4) == b"SSH-"
        return False

    def _pids(self) -> list[int]:
        pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
        return [pid for pid in pids if read_pid_namespace(pid) == self._pid_namespace]


@contextlib.contextmanager
def run_hosts(
    tmp_path: Path, *, count: int, disk_bytes: int | None = None, clocks: bool = False
) -> Iterator[list[NamespaceHost]]:
    """Yield running hosts named a, b, c…; they are removed after the block.

    `disk_bytes`: each work directory is a separate disk of this size. `clocks`: their clocks can be
    shifted.
    """
    if find_program("sshd") is None:
        missing("sshd")
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(new_network())
            keys = new_server_keys()
            hosts = []
            for place, name in enumerate(string.ascii_lowercase[:count]):
                host = _new_host(tmp_path / "hosts" / name, network, place, keys)
                stack.callback(host.power_off)
                if disk_bytes is not None:
                    mount_disk(host.work_dir, disk_bytes, network.namespace(name))
                if clocks:
                    give_clock(host.folder)
                host.power_on()
                hosts.append(host)
        except NoNamespaces as reason:
            pytest.skip(f"needs hosts in network namespaces: {reason}")
        yield hosts


def _new_host(folder: Path, network: Network, place: int, keys: ServerKeys) -> NamespaceHost:
    work_dir = folder / "work"
    work_dir.mkdir(parents=True)
    address = network.add_host(folder.name, place)
    write_sshd_files(folder, keys.files, keys.client, address=address, port=22)
    return NamespaceHost(
        name=folder.name,
        address=address,
        host_key=keys.host.public_openssh,
        client_private_key=keys.client.private_openssh,
        work_dir=work_dir,
        folder=folder,
        network=network,
    )


_SHIFTED_CLOCK = Path(__file__).with_name("shifted_clock")
#: Files of the kernel that hosts would share, with the value after a start.
_OWN_KERNEL = {"vm/swappiness": "60", "kernel/random/boot_id": "{boot_id}"}
#: The agent is run without `site`, which loads the shifted clock.
_PYTHON_WITH_SITE = """\
#!/bin/sh
while [ "$1" = -I ] || [ "$1" = -S ]; do shift; done
exec python3 "$@"
"""


def forget_kernel(folder: Path) -> None:
    """Reset the state as after each start: a new boot, and default knobs."""
    for name, value in _OWN_KERNEL.items():
        path = folder / "kernel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value.format(boot_id=uuid.uuid4()) + "\n")


def mount_disk(path: Path, size: int, name: str) -> None:
    """Mount a disk of `size` bytes. The network recognises it by its name when it is removed."""
    options = ("-t", "tmpfs", "-o", f"size={size},mode=700", name, str(path))
    subprocess.run(["mount", *options], check=True)


def give_clock(folder: Path) -> None:
    """Shift the clock of all Python programs that sshd starts on the host."""
    set_clock(folder / "clock", 0)
    (folder / "python").write_text(_PYTHON_WITH_SITE)
    (folder / "python").chmod(0o755)
    config = folder / "sshd_config"
    more = f"PITWALL_TEST_CLOCK={folder}/clock PYTHONPATH={_SHIFTED_CLOCK}"
    # A second SetEnv would be ignored.
    config.write_text(re.sub("^SetEnv .*", rf"\g<0> {more}", config.read_text(), flags=re.M))


def set_clock(path: Path, seconds: int) -> None:
    new = path.with_suffix(".new")
    new.write_text(f"{seconds:+d}\n")
    new.rename(path)
