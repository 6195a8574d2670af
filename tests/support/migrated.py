"""A dump of the migrated, empty database, from which later test databases are made.

Restoring it is several times as fast as applying all migrations. `migrate` runs on the copy as well
and has nothing to apply.
"""

import os
import subprocess
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import psycopg
from django.db import OperationalError, connection
from psycopg import sql

from devstack.filelock import wait_for_lock
from devstack.places import CHECKOUT, STATE
from orchestrator.archives.database.clients import find_folder, read_server
from orchestrator.core.errors import ConflictError
from tests.support.engine import own_database_url

NAME = "pitwall_migrated"

#: Holds the lock while this process migrates.
_lock = ExitStack()


def use_saved() -> None:
    """Make the test database a copy of the saved one, if one has the same migrations.

    If there is none, the first process migrates and saves. The others wait for its dump.
    """
    file = _saved()
    if file is None:
        return
    if not file.exists():
        waiting = "pitwall: another process migrates; waiting."
        _lock.enter_context(wait_for_lock(file.with_suffix(".lock"), waiting))
        if not file.exists():
            return  # save() releases the lock.
        _lock.close()
    quoted = sql.Identifier(NAME)
    with psycopg.connect(own_database_url(), autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(quoted))
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(quoted))
    _read(file, NAME)
    connection.settings_dict["TEST"]["TEMPLATE"] = NAME


def fill_from_saved() -> None:
    """Create the tables of the empty database from a saved one with the same migrations."""
    file = _saved()
    if file is not None and file.exists():
        _read(file, str(connection.settings_dict["NAME"]))


def save() -> None:
    """Save the present database for other processes and later runs; removes older dumps."""
    file = _saved()
    if file is None or file.exists():
        _lock.close()
        return
    new = file.with_suffix(f".{os.getpid()}")
    name = str(connection.settings_dict["NAME"])
    _run("pg_dump", "--no-owner", "--no-privileges", f"--file={new}", name=name)
    for old in file.parent.glob("test-database-*.sql"):
        old.unlink(missing_ok=True)
    new.rename(file)
    _lock.close()


def _saved() -> Path | None:
    """Return None if there are no programs of the server's version, or no saved database yet."""
    try:
        server = read_server()
        connection.close()
        find_folder(server)
    except (ConflictError, OperationalError):
        return None
    digest = sha256(server.version.encode())
    for path in (
        *sorted((CHECKOUT / "orchestrator").glob("*/migrations/*.py")),
        CHECKOUT / "requirements.txt",
    ):
        digest.update(str(path.relative_to(CHECKOUT)).encode() + path.read_bytes())
    return STATE / f"test-database-{digest.hexdigest()[:16]}.sql"


def _read(file: Path, name: str) -> None:
    _run("psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-f", str(file), name=name)


def _run(program: str, *options: str, name: str) -> None:
    """Raise the program's output if it fails."""
    server = read_server()
    connection.close()
    address = psycopg.conninfo.make_conninfo(server.address, dbname=name)
    argv = [str(find_folder(server) / program), *options, f"--dbname={address}"]
    done = subprocess.run(argv, env=server.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
