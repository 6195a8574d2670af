"""Databases of our own on one PostgreSQL, and a gunicorn for each, as it is deployed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from devstack.instance import any_port
from devstack.places import CHECKOUT
from devstack.stack import answers
from perf.harness.processes import children_of, memory_of, tree_cpu_s
from perf.scaling.loading import Made

WORKERS = 2
#: All clients are of one user and one address.
UNLIMITED = {"PITWALL_SESSION_REQUESTS_A_MINUTE": "0", "PITWALL_VISITOR_REQUESTS_A_MINUTE": "0"}
START_S = 60.0
STOP_S = 10.0


class ServerError(Exception):
    """A server or a step did not work; the text has its output."""


@dataclass(slots=True)
class Server:
    """A gunicorn; its access log has microseconds and status of each request, a line each."""

    port: int
    pid: int
    log: Path
    read: int = 0

    def served_s(self, count: int) -> list[float]:
        """Seconds in the server of the last `count` requests, once all of them are logged."""
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
        """What all its processes hold for themselves and their part of what they share."""
        pids = [self.pid, *children_of(self.pid)]
        return sum(memory_of(pid).pss for pid in pids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The server that the environment names; it runs below the process that started us."""

    url: str
    pid: int

    @classmethod
    def ours(cls) -> Postgres:
        found = children_of(os.getppid())
        pid = next((pid for pid, line in found.items() if "postgres" in line), None)
        if pid is None:
            raise ServerError("there is no PostgreSQL of our own: unset DATABASE_URL")
        return cls(url=os.environ["DATABASE_URL"], pid=pid)

    def database(self, name: str) -> str:
        """The address of a new, empty database."""
        with self._superuser() as connection:
            query = sql.SQL("CREATE DATABASE {} OWNER pitwall").format(sql.Identifier(name))
            connection.execute(query)
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"/{name}"))

    def cpu_s(self) -> float:
        return tree_cpu_s(self.pid)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Inside, checkpoints are rarer and nothing is vacuumed meanwhile; afterwards all settings
        are those of every server."""
        with self._superuser() as connection:
            connection.execute("ALTER SYSTEM SET max_wal_size = '16GB'")
            connection.execute("ALTER SYSTEM SET autovacuum = off")
            connection.execute("SELECT pg_reload_conf()")
            yield
            connection.execute("ALTER SYSTEM RESET ALL")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CHECKPOINT")

    def _superuser(self) -> psycopg.Connection:
        url = self.url.replace("://pitwall@", "://postgres@")
        return psycopg.connect(url, autocommit=True)


def fill(url: str, size: str) -> Made:
    """A process of its own per database: Django knows one."""
    argv = [sys.executable, "-m", "perf.scaling.loading", size]
    environment = {**os.environ, "DATABASE_URL": url}
    done = subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServerError(f"filling {size} failed\n{done.stderr}")
    return Made(**json.loads(done.stdout.splitlines()[-1]))


def collect_static() -> None:
    argv = [sys.executable, "manage.py", "collectstatic", "--noinput"]
    subprocess.run(argv, cwd=CHECKOUT, env=dict(os.environ), check=True, capture_output=True)


@contextmanager
def serving_bare(folder: Path) -> Iterator[Server]:
    """The yardstick of `bare.py`, served as Pitwall is."""
    settings = {"DJANGO_SETTINGS_MODULE": "perf.scaling.bare_settings"}
    config = "perf.scaling.bare_serving"
    with serving("perf.scaling.bare", folder, settings, config=config) as server:
        yield server


@contextmanager
def serving(
    application: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    config: str = "orchestrator.config.serving",
) -> Iterator[Server]:
    """A gunicorn on loopback that answers; ended afterwards."""
    port = any_port()
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
    while not answers(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServerError(f"gunicorn does not answer at {url}")
        time.sleep(0.1)
