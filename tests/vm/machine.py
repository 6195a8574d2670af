"""A virtual machine with a real kernel and systemd, emulated by QEMU without KVM and without root.

It has one socket with 2 cores of 2 threads and two NUMA nodes. Its disk is a snapshot, which ends
with it. It has no network but a forwarded port of its SSH server.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agents.hostagent.platform.ports import find_free_port
from cli.pitwall.setup_script import build_setup_script
from devstack.processes import die_with_parent
from orchestrator.core.errors import HostError
from orchestrator.transport.address import SshAddress
from orchestrator.transport.base import CommandResult
from orchestrator.transport.ssh import SshTransport
from tests.support.sshd import LOOPBACK
from tests.vm.image import Image

BOOT_TIMEOUT_S = 240
COMMAND_TIMEOUT_S = 180
MEMORY_MB = 1024


@dataclass(kw_only=True)
class Machine:
    image: Image
    port: int
    process: subprocess.Popen[bytes]

    def address(self, user: str = "root", work_dir: str = "vm-test") -> SshAddress:
        return SshAddress(
            host="127.0.0.1",
            port=self.port,
            user=user,
            host_key=self.image.host_key,
            private_key=self.image.key.private_openssh,
            work_dir=work_dir,
            networks=LOOPBACK,
        )

    def connect(self, user: str = "root") -> SshTransport:
        return SshTransport(self.address(user), connect_timeout_s=30)

    def run(self, script: str, user: str = "root", *words: str) -> str:
        """Return the output of a shell script in a login of its own; AssertionError if it fails."""
        done = self.try_running(script, user, *words)
        output = done.stdout.decode()
        assert done.exit_status == 0, f"{output}\n{done.stderr.decode()}"
        return output.strip()

    def try_running(self, script: str, user: str = "root", *words: str) -> CommandResult:
        with self.connect(user) as transport:
            return transport.run(
                ["sh", "-s", *words], stdin=script.encode(), timeout_s=COMMAND_TIMEOUT_S
            )

    def await_boot(self) -> None:
        """Wait until somebody can log in."""
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while True:
            assert self.process.poll() is None, "QEMU ended"
            try:
                self.run("true")
                return
            except HostError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(1)

    def reset(self) -> None:
        """Restart as after a power failure. Written files are on the disk."""
        with contextlib.suppress(HostError), self.connect() as transport:
            script = b"sync; (sleep 0.2; echo b > /proc/sysrq-trigger) > /dev/null 2>&1 &"
            transport.run(["sh", "-s"], stdin=script, timeout_s=10)

    def read_boot_id(self) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id")


def build_script(machine: Machine) -> str:
    """Return the script of `pitwall host setup` for the account `pitwall` and the image's key."""
    return build_setup_script("pitwall", machine.image.key.public_openssh)


@contextlib.contextmanager
def start_machine(image: Image, logs: Path) -> Iterator[Machine]:
    """Start a machine and wait until it answers; kill exactly this QEMU at the end."""
    port = find_free_port("127.0.0.1", None)
    with (logs / "qemu.log").open("wb") as log:
        process = subprocess.Popen(
            _build_command(image, port, logs / "console.log"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGKILL),
        )
    machine = Machine(image=image, port=port, process=process)
    try:
        machine.await_boot()
        yield machine
    finally:
        process.kill()
        process.wait()


def _build_command(image: Image, port: int, console: Path) -> list[str]:
    half = MEMORY_MB // 2
    files = image.folder
    # fmt: off
    return [
        "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "Skylake-Client",
        "-smp", "4,sockets=1,cores=2,threads=2", "-m", str(MEMORY_MB),
        "-object", f"memory-backend-ram,id=m0,size={half}M",
        "-object", f"memory-backend-ram,id=m1,size={half}M",
        "-numa", "node,nodeid=0,memdev=m0,cpus=0-1", "-numa", "node,nodeid=1,memdev=m1,cpus=2-3",
        "-kernel", str(files / "kernel"), "-initrd", str(files / "initrd"),
        "-append", "root=/dev/vda rw console=ttyS0 quiet",
        "-drive", f"file={files / 'disk.img'},format=raw,if=virtio,snapshot=on",
        "-netdev", f"user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device", "virtio-net-pci,netdev=n0", "-device", "virtio-rng-pci",
        "-display", "none", "-monitor", "none", "-serial", f"file:{console}",
    ]
    # fmt: on
