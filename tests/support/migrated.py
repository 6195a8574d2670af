"""The migrated, empty database of an earlier test run, used as a template.

Applying all migrations takes several times as long as restoring it. `migrate` runs on the copy as
well, and finds nothing to apply.
"""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

import psycopg
from django.db import OperationalError, connection
from psycopg import sql

from devstack.places import CHECKOUT, STATE
from orchestrator.archives.database.clients import clients_of, our_server
from orchestrator.core.errors import ConflictError
from tests.support.engine import own_database_url

NAME = "pitwall_migrated"


def use_saved() -> None:
    """Make the test database a copy of the saved one, if that has the same migrations."""
    file = _saved()
    if file is None or not file.exists():
        return
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
    """Save the present database for the next run, in place of older ones."""
    file = _saved()
    if file is None or file.exists():
        return
    new = file.with_suffix(f".{os.getpid()}")
    name = str(connection.settings_dict["NAME"])
    _run("pg_dump", "--no-owner", "--no-privileges", f"--file={new}", name=name)
    for old in file.parent.glob("test-database-*.sql"):
        old.unlink(missing_ok=True)
    new.rename(file)


def _saved() -> Path | None:
    """Return None if there are no programs of the server's version, or no saved database yet."""
    try:
        server = our_server()
        connection.close()
        clients_of(server)
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
    server = our_server()
    connection.close()
    address = psycopg.conninfo.make_conninfo(server.address, dbname=name)
    argv = [str(clients_of(server) / program), *options, f"--dbname={address}"]
    done = subprocess.run(argv, env=server.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
