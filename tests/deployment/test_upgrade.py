"""From one role and one .env to two: the commands of docs/deployment.md, on a real PostgreSQL.

There is no container engine here, so each `docker compose … exec postgres` is left out, and psql
starts on this machine with the environment that the container has.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from devstack.postgres import Postgres
from devstack.supervisor import Supervisor
from orchestrator.accounts.models import User
from orchestrator.archives.database.clients import find_folder, read_server
from orchestrator.operations.doctor_servers import check_database_role
from tests.deployment.image import DOCKER
from tests.deployment.proxied import PAGE
from tests.support.databases import as_our_database

TEXT = PAGE.partition("### From one role")[2]
EXEC = "docker compose --file docker/compose.yaml exec postgres psql "
COMMANDS = [line.strip().removeprefix(EXEC) for line in TEXT.splitlines() if EXEC in line]

FORBIDDEN = (
    "CREATE TABLE more (id int)",
    "CREATE SCHEMA more",
    "ALTER TABLE accounts_auditentry DISABLE TRIGGER audit_stays",
)
#: As the first `new-env.sh` wrote it, and changed by somebody.
OLD_ENV = """\
# Of compose.yaml itself.
POSTGRES_PASSWORD=0123456789abcdef
PITWALL_PORT=8001
PITWALL_SECRET_KEY=a-key-that-sealed-something=
PITWALL_BASE_URL=https://bench.example.org
PITWALL_ALLOWED_HOSTS=bench.example.org
PITWALL_ALLOW_LOCAL_REPOSITORIES=1
PITWALL_OIDC_NAME=Log in at $work & "home"
#PITWALL_TRUSTED_PROXIES=0
PITWALL_TRUSTED_PROXIES=1
"""


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[Postgres]:
    """A server with our tables in a database `pitwall`, whose first role is called so as well."""
    postgres = Postgres(data=tmp_path / "postgres", log=tmp_path / "log", careless=True)
    postgres.prepare()
    with Supervisor() as supervisor:
        supervisor.start(postgres.service())
        _by_psql(postgres, "-U postgres -d postgres -c 'CREATE ROLE other SUPERUSER LOGIN'")
        _by_psql(postgres, "-U other -d postgres -c 'ALTER ROLE postgres RENAME TO pitwall'")
        _by_psql(postgres, "-U pitwall -d postgres -c 'DROP ROLE other'")
        _by_psql(postgres, "-U pitwall -d postgres -c 'CREATE DATABASE pitwall'")
        tables = tmp_path / "tables.sql"
        server = read_server()
        dump = [str(find_folder(server) / "pg_dump"), "--no-owner", "--no-privileges"]
        with tables.open("wb") as out:
            subprocess.run(
                [*dump, f"--dbname={server.address}"],
                env=server.environment,
                stdout=out,
                check=True,
            )
        _by_psql(postgres, f"-U pitwall -d pitwall -q -f {tables}")
        yield postgres


def _by_psql(postgres: Postgres, words: str, **env: str) -> None:
    argv = [str(find_folder(read_server()) / "psql"), "--no-psqlrc", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(
        [*argv, *shlex.split(words)],
        env={**os.environ, "PGHOST": str(postgres.sockets), **env},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stderr}"


@pytest.mark.django_db
def test_an_older_database_gets_two_roles_by_the_documented_commands(
    old_server: Postgres, tmp_path: Path
) -> None:
    passwords = {"PITWALL_OWNER_PASSWORD": "one", "PITWALL_DATABASE_PASSWORD": "another"}
    assert len(COMMANDS) == 4
    for words in COMMANDS:
        here = words.replace("/docker-entrypoint-initdb.d", str(DOCKER / "postgres"))
        _by_psql(old_server, here, **passwords)
    with as_our_database(old_server.url.replace("pitwall@", "pitwall_owner@")):
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE accounts_auditentry ADD COLUMN of_the_next_version int")
            cursor.execute("CREATE TABLE of_the_next_version (id serial)")
            cursor.execute("ALTER FUNCTION accounts_audit_stays() RENAME TO accounts_audit_remains")
    with as_our_database(old_server.url):
        (finding,) = check_database_role()
        assert finding.outcome == "ok", finding
        User.objects.create_user(username="dave")
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO of_the_next_version DEFAULT VALUES")
        for statement in FORBIDDEN:
            with pytest.raises(DatabaseError) as refused, transaction.atomic():
                connection.cursor().execute(statement)
            assert refused.value.__cause__.sqlstate == "42501", statement


def test_values_of_the_single_env_file_are_carried_over(tmp_path: Path) -> None:
    for name in ("new-env.sh", "env.example", "compose.env.example"):
        shutil.copy(DOCKER / name, tmp_path)
    (tmp_path / ".env").write_text(OLD_ENV)
    argv = ["sh", str(tmp_path / "new-env.sh")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert "Left out PITWALL_ALLOW_LOCAL_REPOSITORIES" in done.stderr
    assert (tmp_path / ".env.old").read_text() == OLD_ENV
    ours, of_compose = (_values(tmp_path / name) for name in ("pitwall.env", ".env"))
    old = _values(tmp_path / ".env.old")
    assert {name: of_compose[name] for name in ("POSTGRES_PASSWORD", "PITWALL_PORT")} == {
        "POSTGRES_PASSWORD": "0123456789abcdef", "PITWALL_PORT": "8001",
    }  # fmt: skip
    assert all(len(of_compose[name]) == 64 for name in of_compose.keys() - old.keys())
    kept = old.keys() - of_compose.keys() - {"PITWALL_ALLOW_LOCAL_REPOSITORIES"}
    assert ours == {name: old[name] for name in kept}
    assert {path.stat().st_mode & 0o077 for path in tmp_path.glob("*.env")} == {0}
    assert subprocess.run(argv, capture_output=True).returncode == 1


def _values(path: Path) -> dict[str, str]:
    """Each name once."""
    lines = re.findall(r"(?m)^([A-Z][A-Z0-9_]*)=(.*)$", path.read_text())
    assert len({name for name, _ in lines}) == len(lines)
    return dict(lines)
