"""One instance of Pitwall on this machine: a folder under `.pitwall` that one process locks."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from devstack.errors import DevstackError
from devstack.filelock import try_lock
from devstack.places import STATE

USUAL_PORT = 8000
MOST_COPIES = 9
# How long a guard may take to end the processes of a killed supervisor.
LEFTOVER_S = 50.0


class InstanceError(DevstackError):
    """The instance is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """`lock` is the descriptor that holds it; `root` is the folder of all its data."""

    name: str
    root: Path
    lock: int

    def log(self, name: str) -> Path:
        return self.root / "logs" / f"{name}.log"

    def secret_key(self) -> str:
        """Created once, readable only for its owner."""
        path = self.root / "secret_key"
        with contextlib.suppress(FileNotFoundError):
            if key := path.read_text().strip():
                return key
        path.unlink(missing_ok=True)
        key = secrets.token_urlsafe(48)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key)
        return key

    def port(self) -> int:
        """Return the first free port: that of last time, the usual one, or any."""
        path = self.root / "port"
        remembered = int(path.read_text()) if path.exists() else USUAL_PORT
        port = next(port for port in (remembered, USUAL_PORT, choose_port()) if is_free(port))
        path.write_text(str(port))
        return port

    def announce(self, url: str) -> None:
        """Store the address for a second process that finds the lock taken."""
        (self.root / "running.json").write_text(json.dumps({"pid": os.getpid(), "url": url}))


def hold_instance(name: str) -> Instance:
    """Lock the instance of this name. Raise InstanceError while another process runs it."""
    root = STATE / name
    deadline = time.monotonic() + LEFTOVER_S
    while (lock := try_lock(root / "lock")) is None:
        pid, url = read_running(root)
        if pid is None or is_alive(pid):
            at = f" at {url}" if url else ""
            who = f" (process {pid})" if pid else ""
            raise InstanceError(f"Pitwall runs already in this checkout{at}{who}. Stop it first.")
        if time.monotonic() > deadline:
            raise InstanceError(f"What process {pid} left in {root} does not end. See its logs.")
        time.sleep(0.1)
    return clear_address(Instance(name=name, root=root, lock=lock))


def find_running_instance(name: str) -> tuple[Instance, str] | None:
    """Return the instance that another process runs, and its address; None if there is none.

    Raise InstanceError while it is still starting, or is used without an address.
    """
    root = STATE / name
    lock = try_lock(root / "lock")
    if lock is not None:
        os.close(lock)
        return None
    pid, url = read_running(root)
    if not url:
        raise InstanceError(f"Pitwall is starting or in use (process {pid}). Try again soon.")
    return Instance(name=name, root=root, lock=-1), url


def hold_free_instance(name: str) -> Instance:
    """Lock the instance of this name, or the first free one of `name-2`, `name-3`…"""
    names = [name, *(f"{name}-{number}" for number in range(2, MOST_COPIES + 1))]
    for candidate in names:
        root = STATE / candidate
        lock = try_lock(root / "lock")
        if lock is not None:
            return clear_address(Instance(name=candidate, root=root, lock=lock))
    raise InstanceError(f"{MOST_COPIES} of the instance {name} are in use. Wait for one to end.")


def clear_address(instance: Instance) -> Instance:
    instance.announce("")
    return instance


def read_running(root: Path) -> tuple[int | None, str]:
    try:
        record = json.loads((root / "running.json").read_text())
    except (OSError, ValueError):
        return None, ""
    return record["pid"], record["url"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def choose_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As in gunicorn: a port with closing connections is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
