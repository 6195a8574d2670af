"""A private network for a test run: namespaces with their own addresses, joined by a bridge.

Each network has a number, protected by a lock that the kernel releases when its process dies. The
number is part of every name, so the next holder of the lock can identify leftovers.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devstack.filelock import try_lock

_LOCKS = Path("/run/pitwall-test-hosts")
_MOST_NETWORKS = 200
_NAMESPACE = re.compile(r"pitwall-(\d+)-")


class NoNamespaces(Exception):
    """Network namespaces cannot be created here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A bridge with the first address of its own subnet, from the range for benchmarks."""

    number: int

    @property
    def bridge(self) -> str:
        return f"pitwall{self.number}"

    @property
    def address(self) -> str:
        return self._address(1)

    def namespace(self, host: str) -> str:
        return f"pitwall-{self.number}-{host}"

    def link(self, host: str) -> str:
        """Return the bridge's end of the host's cable."""
        return f"pw{self.number}-{host}"

    def add_host(self, host: str, place: int) -> str:
        """Create a namespace with a cable to the bridge; return its address."""
        namespace, address = self.namespace(host), self._address(10 + place)
        ip("netns", "add", namespace)
        ip(
            "link",
            "add",
            self.link(host),
            "type",
            "veth",
            *("peer", "name", "eth0", "netns", namespace),
        )
        ip("link", "set", self.link(host), "master", self.bridge, "up")
        ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", namespace, "link", "set", "eth0", "up")
        return address

    def _address(self, last: int) -> str:
        return f"198.18.{self.number}.{last}"


@contextlib.contextmanager
def new_network() -> Iterator[Network]:
    """Yield a network that contains only this machine. Raise NoNamespaces if that is impossible."""
    _check_means()
    _remove_leftovers()
    number, lock = _free_number()
    network = Network(number=number)
    try:
        _remove(number)
        try:
            ip("link", "add", network.bridge, "type", "bridge")
            ip("address", "add", f"{network.address}/24", "dev", network.bridge)
            ip("link", "set", network.bridge, "up")
            ip("netns", "add", network.namespace("probe"))
        except subprocess.CalledProcessError as error:
            raise NoNamespaces(error.stderr.strip()) from error
        yield network
    finally:
        _remove(number)
        os.close(lock)


def ip(*args: str) -> str:
    done = subprocess.run(["ip", *args], check=True, capture_output=True, text=True)
    return done.stdout


def _check_means() -> None:
    if sys.platform != "linux":
        raise NoNamespaces("this is not Linux")
    if os.geteuid() != 0:
        raise NoNamespaces("the tests do not run as root")
    for program in ("ip", "nsenter", "unshare", "mount"):
        if shutil.which(program) is None:
            raise NoNamespaces(f"there is no program {program}")


def _free_number() -> tuple[int, int]:
    for number in range(_MOST_NETWORKS):
        lock = try_lock(_LOCKS / str(number))
        if lock is not None:
            return number, lock
    raise NoNamespaces(f"{_MOST_NETWORKS} networks of tests are in use")


def _remove_leftovers() -> None:
    """Remove networks of killed test runs."""
    for number in sorted({int(_NAMESPACE.match(name)[1]) for name in _namespaces()}):  # type: ignore[index]
        lock = try_lock(_LOCKS / str(number))
        if lock is not None:
            _remove(number)
            os.close(lock)


def _remove(number: int) -> None:
    """Remove everything with the number in its name, if it exists."""
    network = Network(number=number)
    for link in Path("/sys/class/net").glob(network.link("*")):
        # The namespace would remove it too, but later.
        ip("link", "delete", link.name)
    for namespace in _namespaces():
        if namespace.startswith(network.namespace("")):
            for pid in ip("netns", "pids", namespace).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            ip("netns", "delete", namespace)
    for source, target in _mounts():
        if source.startswith(network.namespace("")):
            subprocess.run(["umount", "--lazy", target], check=True)
    if Path("/sys/class/net", network.bridge).exists():
        ip("link", "delete", network.bridge)


def _namespaces() -> list[str]:
    names = [line.split()[0] for line in ip("netns", "list").splitlines() if line]
    return [name for name in names if _NAMESPACE.match(name)]


def _mounts() -> list[tuple[str, str]]:
    rows = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [(row[0], row[1]) for row in rows]
