"""A PostgreSQL and a Redis that a test may stop without disturbing other tests."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.core.management import call_command

from devstack.postgres import Postgres
from devstack.processes import Child, Service, spawn
from devstack.redis import Redis
from tests.support import migrated
from tests.support.databases import as_our_database

_START_S = 30


@dataclass(slots=True, kw_only=True)
class OwnServer:
    """Started and stopped by hand; `url` stays the same. `sockets` is the folder of its socket."""

    url: str
    sockets: Path
    service: Service
    child: Child | None = None

    def start(self) -> None:
        give_up = time.monotonic() + _START_S
        while not self.service.ready():
            # One that was killed leaves its children, and these its lock, for a moment.
            if self.child is None or self.child.status() is not None:
                self.child = spawn(self.service.command)
            assert time.monotonic() < give_up, f"{self.service.command.name} does not start"
            time.sleep(0.05)

    def kill(self) -> None:
        """At once, with all that it knew only in memory."""
        if self.child is not None:
            self.child.kill_group()
        self.child = None


@contextlib.contextmanager
def own_redis(folder: Path) -> Iterator[OwnServer]:
    redis = Redis(data=folder / "redis", log=folder / "redis.log")
    with _running(redis.url, redis.service(), redis.socket.parent) as server:
        yield server


@contextlib.contextmanager
def own_postgres(folder: Path) -> Iterator[OwnServer]:
    """Empty but for the tables; for the block it is the database of this process too."""
    postgres = Postgres(data=folder / "postgres", log=folder / "postgres.log")
    postgres.prepare()
    with _running(postgres.url, postgres.service(), postgres.sockets) as server:
        postgres.create_database()
        with as_our_database(server.url):
            migrated.fill_from_saved()
            call_command("migrate", verbosity=0)
            yield server


@contextlib.contextmanager
def _running(url: str, service: Service, sockets: Path) -> Iterator[OwnServer]:
    server = OwnServer(url=url, service=service, sockets=sockets)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(sockets, ignore_errors=True)
