"""Web servers of benchmarks: a gunicorn as it is deployed, for Pitwall and for a bare view."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devstack.instance import choose_port
from devstack.places import CHECKOUT
from devstack.stack import does_answer
from perf.harness.processes import list_children, read_memory

WORKERS = 2
#: All clients have one user and one address.
UNLIMITED = {"PITWALL_SESSION_REQUESTS_A_MINUTE": "0", "PITWALL_VISITOR_REQUESTS_A_MINUTE": "0"}
START_S = 60.0
STOP_S = 10.0


class ServerError(Exception):
    """A server or a step failed; the text has its output."""


@dataclass(slots=True)
class Server:
    """A gunicorn; its access log has one line per request with microseconds and status."""

    port: int
    pid: int
    log: Path
    read: int = 0

    def served_s(self, count: int) -> list[float]:
        """Return the server's seconds of the last `count` requests, once all are logged."""
        deadline = time.monotonic() + 5
        while True:
            text = self.log.read_bytes()[self.read :]
            lines = text.splitlines()
            if len(lines) >= count and text.endswith(b"\n"):
                self.read += len(text)
                return [int(line.split()[0]) / 1e6 for line in lines[-count:]]
            if time.monotonic() > deadline:
                raise ServerError(f"{self.log} has {len(lines)} of {count} requests")
            time.sleep(0.02)

    def memory_bytes(self) -> int:
        """Return the memory of all its processes, with their share of common pages."""
        pids = [self.pid, *list_children(self.pid)]
        return sum(read_memory(pid).pss for pid in pids)


def collect_static() -> None:
    argv = [sys.executable, "manage.py", "collectstatic", "--noinput"]
    subprocess.run(argv, cwd=CHECKOUT, env=dict(os.environ), check=True, capture_output=True)


@contextmanager
def serve_bare(folder: Path) -> Iterator[Server]:
    """Serve the view of `bare_app.py` as Pitwall is served."""
    settings = {"DJANGO_SETTINGS_MODULE": "perf.harness.bare_settings"}
    config = "perf.harness.bare_gunicorn"
    with serve_web("perf.harness.bare_app", folder, settings, config=config) as server:
        yield server


@contextmanager
def serve_web(
    application: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    config: str = "orchestrator.config.serving",
) -> Iterator[Server]:
    """Start a gunicorn on loopback; yield it when it answers, and stop it afterwards."""
    port = choose_port()
    log = folder / f"access-{port}.log"
    log.touch()
    url = f"http://127.0.0.1:{port}"
    argv = [
        *(sys.executable, "-m", "gunicorn", application),
        *("--config", f"python:{config}", "--workers", str(WORKERS)),
        *("--bind", f"127.0.0.1:{port}", "--graceful-timeout", "2", "--no-control-socket"),
        *("--access-logfile", str(log), "--access-logformat", "%(D)s %(s)s"),
    ]
    own = {"PITWALL_BASE_URL": url, "PITWALL_LOG_LEVEL": "WARNING"}
    env = {**os.environ, **UNLIMITED, **environment, **own}
    with (folder / f"web-{port}.log").open("wb") as out:
        process = subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=out, stderr=out)
    try:
        _wait_until(url, process)
        yield Server(port=port, pid=process.pid, log=log, read=log.stat().st_size)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while not does_answer(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServerError(f"gunicorn does not answer at {url}")
        time.sleep(0.1)
