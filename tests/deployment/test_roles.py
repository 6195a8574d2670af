"""Pitwall runs as a role that changes rows alone; another one, the owner, migrates and restores."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from psycopg import sql

from orchestrator.accounts.models import AuditEntry, User
from orchestrator.archives.database.clients import find_folder, read_server
from orchestrator.core.ids import new_hex
from orchestrator.operations.doctor_servers import check_database_role
from orchestrator.results.models import Reading
from tests.deployment.image import DOCKER
from tests.support.databases import as_our_database, empty_database
from tests.support.demo_team import make_demo_team
from tests.support.engine import own_database_url

pytestmark = pytest.mark.django_db(transaction=True)


#: Of the PostgreSQL that `make test` starts.
SUPERUSER = "postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The names that stand for pitwall_owner and pitwall: roles belong to the whole server."""

    owner: str
    ours: str

    def script(self) -> str:
        text = (DOCKER / "postgres" / "roles.sql").read_text()
        names = {"pitwall_owner": self.owner, "pitwall": self.ours}
        return re.sub(r"\bpitwall(_owner)?\b", lambda found: names[found[0]], text)

    def make_in(self, url: str, folder: Path) -> None:
        """What the image of PostgreSQL does with the file, by a real psql."""
        file = folder / "roles.sql"
        file.write_text(self.script())
        psql = find_folder(read_server()) / "psql"
        secrets = {"PITWALL_OWNER_PASSWORD": "it's one", "PITWALL_DATABASE_PASSWORD": "another"}
        superuser = as_role(url, SUPERUSER)
        argv = [str(psql), "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-d", superuser, "-f", str(file)]
        done = subprocess.run(argv, env={**os.environ, **secrets}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        # Only so may the tests' own role end their sessions when it drops the database.
        member = sql.SQL("GRANT {}, {} TO {}").format(
            *map(sql.Identifier, (self.owner, self.ours, connection.settings_dict["USER"]))
        )
        with psycopg.connect(superuser) as server:
            server.execute(member)


@pytest.fixture
def roles() -> Iterator[Roles]:
    tail = new_hex()[:8]
    roles = Roles(owner=f"test_{tail}_owner", ours=f"test_{tail}")
    yield roles
    with psycopg.connect(as_role(own_database_url(), SUPERUSER), autocommit=True) as server:
        for name in (roles.owner, roles.ours):
            server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def as_role(url: str, name: str) -> str:
    return re.sub(r"//[^@]*@", f"//{quote(name)}@", url, count=1)


@pytest.fixture
def database(roles: Roles, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated database, for the role that Pitwall has at run time."""
    with empty_database() as url:
        roles.make_in(url, tmp_path)
        roles.make_in(url, tmp_path)  # It may be run again.
        with as_our_database(as_role(url, roles.owner)):
            call_command("migrate", verbosity=0)
        yield as_role(url, roles.ours)


FORBIDDEN = (
    "CREATE TABLE more (id int)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE accounts_auditentry DISABLE TRIGGER audit_stays",
    "ALTER TABLE accounts_auditentry ADD COLUMN more int",
    "DROP TRIGGER audit_stays ON accounts_auditentry",
    "CREATE OR REPLACE FUNCTION accounts_audit_stays() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RETURN NEW; END'",
    "DROP TABLE accounts_auditentry",
    "TRUNCATE accounts_auditentry",
    "SET session_replication_role = replica",
    "SET ROLE {owner}",
    "CREATE ROLE more SUPERUSER",
    "COPY accounts_team TO PROGRAM 'cat'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT rolpassword FROM pg_authid",
)


def test_pitwall_works_with_a_role_that_cannot_change_the_schema(
    database: str, roles: Roles, tmp_path: Path, data_dir: Path
) -> None:
    """And the owner restores the backup that it makes."""
    with as_our_database(database):
        demo_team = make_demo_team(tmp_path)
        assert Reading.objects.exists()
        client = Client()
        client.force_login(User.objects.get(username="alice"))
        sides = f"baseline={demo_team.shas[0]}&contender={demo_team.shas[1]}"
        assert client.get(f"/compare/?benchmark=server/many&{sides}").status_code == 200
        (finding,) = check_database_role()
        assert finding.outcome == "ok", finding
        for statement in FORBIDDEN:
            with pytest.raises(DatabaseError) as refused, transaction.atomic():
                run(statement.format(owner=roles.owner))
            assert refused.value.__cause__.sqlstate == "42501", statement  # insufficient_privilege
        for statement in ("UPDATE accounts_auditentry SET action = 'x'",
                          "DELETE FROM accounts_auditentry"):  # fmt: skip
            with pytest.raises(DatabaseError, match="only ever added to"), transaction.atomic():
                run(statement)
        assert AuditEntry.objects.exists()
        backup = tmp_path / "pitwall.zip"
        call_command("backup", backup, quiet=True, verbosity=0)
    with empty_database() as other:
        roles.make_in(other, tmp_path)
        with as_our_database(as_role(other, roles.owner)):
            call_command("restore", backup, quiet=True, verbosity=0)
            (finding,) = check_database_role()
            assert finding.outcome != "ok", "the owner is not the role of run time"
        with as_our_database(as_role(other, roles.ours)):
            assert User.objects.filter(username="alice").exists()
            User.objects.create_user(username="dave")
            with pytest.raises(DatabaseError), transaction.atomic():
                run("ALTER TABLE accounts_auditentry DISABLE TRIGGER audit_stays")


def test_the_doctor_warns_of_a_superuser() -> None:
    with as_our_database(as_role(own_database_url(), SUPERUSER)):
        (finding,) = check_database_role()
    assert "a superuser" in finding.message
    assert "roles.sql" in finding.remedy


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
