"""Create and fill databases on the PostgreSQL of this benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from devstack.places import CHECKOUT
from perf.harness.processes import list_children, sum_tree_cpu_s
from perf.harness.web_servers import ServerError
from perf.scale.loading import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The server in the environment; it runs below the process that started us."""

    url: str
    pid: int

    @classmethod
    def open_own_database(cls) -> Postgres:
        children = list_children(os.getppid())
        pid = next((pid for pid, line in children.items() if "postgres" in line), None)
        if pid is None:
            raise ServerError("the benchmark needs its own PostgreSQL: unset DATABASE_URL")
        return cls(url=os.environ["DATABASE_URL"], pid=pid)

    def database(self, name: str) -> str:
        """Create an empty database. Return its address."""
        with self._superuser() as connection:
            query = sql.SQL("CREATE DATABASE {} OWNER pitwall").format(sql.Identifier(name))
            connection.execute(query)
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"/{name}"))

    def cpu_s(self) -> float:
        return sum_tree_cpu_s(self.pid)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Set rare checkpoints and no autovacuum for the block; afterwards restore the defaults."""
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


def fill(url: str, size: str) -> Dataset:
    """Use one process per database, because Django connects to one."""
    argv = [sys.executable, "-m", "perf.scale.loading", size]
    environment = {**os.environ, "DATABASE_URL": url}
    done = subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServerError(f"filling {size} failed\n{done.stderr}")
    return Dataset(**json.loads(done.stdout.splitlines()[-1]))
