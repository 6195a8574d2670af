"""A real gunicorn with the deployed settings, on the test's own database."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from devstack.instance import choose_port
from devstack.processes import die_with_parent
from tests.support.engine import ROOT, own_database_url

_PATIENCE_S = 60
DEPLOYED = "orchestrator.config.serving"
#: With shorter time limits for slow clients.
IMPATIENT = "tests.support.impatient_serving"
#: With room for few requests.
SMALL = "tests.support.small_serving"
#: With room for four connections.
FEW_CONNECTIONS = "tests.support.few_connections_serving"
STUCK = "tests.support.stuck_serving"


@dataclass(slots=True, kw_only=True)
class Served:
    """One worker process; `log` has its output."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    clients: list[socket.socket] = field(default_factory=list)

    def ask(
        self, path: str, *, method: str = "GET", token: str = "", timeout_s: float = 30
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with contextlib.closing(connection):
            connection.request(method, path, headers=_headers(token))
            answer = connection.getresponse()
            return answer, answer.read()

    def send(self, path: str, *, token: str = "") -> "Pending":
        """Send a request whose answer is read later."""
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *_lines(_headers(token)), "", ""]
        return Pending(self.connect("\r\n".join(lines).encode()))

    def connect(self, sent: bytes = b"", receive_buffer: int | None = None) -> socket.socket:
        """Return a client that sent this; it is closed at the latest with the server."""
        client = socket.socket()
        self.clients.append(client)
        client.settimeout(_PATIENCE_S)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def worker(self) -> int:
        """Return the process id of the worker."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        (pid,) = children.read_text().split()
        return int(pid)

    def open_connections(self) -> int:
        """Return the number of established TCP connections on the worker's port."""
        table = Path(f"/proc/{self.worker()}/net/tcp").read_text().splitlines()[1:]
        inodes = set()
        for row in (line.split() for line in table):
            if int(row[1].partition(":")[2], 16) == self.port and row[3] in ("01", "08"):
                inodes.add(row[9])
        ours = 0
        for link in Path(f"/proc/{self.worker()}/fd").iterdir():
            with contextlib.suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
                ours += bool(match and match[1] in inodes)
        return ours

    def wait_for_log(self, text: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while text not in self.log.read_text():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def wait_for_connections(self, count: int) -> None:
        until = time.monotonic() + _PATIENCE_S
        while (number := self.open_connections()) != count:
            assert time.monotonic() < until, f"{number} connections, not {count}"
            time.sleep(0.05)


@dataclass(slots=True)
class Pending:
    """An answer that has not arrived yet."""

    client: socket.socket

    def has_answer(self) -> bool:
        self.client.setblocking(False)
        try:
            return bool(self.client.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.client.settimeout(_PATIENCE_S)

    def answer(self) -> tuple[HTTPResponse, Any]:
        with contextlib.closing(HTTPResponse(self.client)) as answer:
            answer.begin()
            body = answer.read()
        self.client.close()
        return answer, json.loads(body)

    def kill(self) -> None:
        self.client.close()


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    config: str = DEPLOYED,
    threads: int = 2,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """Yield a worker with few threads, so that a test can occupy all of them."""
    port, log = choose_port(), folder / "web.log"
    argv = [
        *(sys.executable, "-m", "gunicorn", "--config", f"python:{config}"),
        *("--workers", "1", "--threads", str(threads), "--bind", f"127.0.0.1:{port}"),
        "--no-control-socket",
    ]
    variables = {"DATABASE_URL": own_database_url(), "PITWALL_DEBUG": "1", **(environment or {})}
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **variables}, stdout=out, stderr=out,
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
        )  # fmt: skip
    server = Served(port=port, process=process, log=log)
    try:
        _wait_until_it_answers(server)
        yield server
    finally:
        for client in server.clients:
            client.close()
        process.terminate()
        process.wait(30)


def _wait_until_it_answers(server: Served) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            server.ask("/healthz")
            return
        except OSError:
            assert server.process.poll() is None, server.log.read_text()
            assert time.monotonic() < until, server.log.read_text()
            time.sleep(0.1)


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _lines(headers: Mapping[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers.items()]
