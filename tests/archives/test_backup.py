"""A backup holds all, comes back as it was or not at all, and has no key in it."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, override_settings

from devstack.places import CHECKOUT
from orchestrator.accounts.invitations import create_invitation, load_invitation
from orchestrator.accounts.models import ApiToken, Role, User
from orchestrator.accounts.services import create_token
from orchestrator.archives.database import clients
from orchestrator.benchmarks.models import Project, ShareLink
from orchestrator.benchmarks.sharing import use_share_link
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PitwallError
from orchestrator.core.issued_secrets import Kind, new_secret
from orchestrator.core.page_cache import forget_parts
from orchestrator.fleet.services import add_credential
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Histogram
from tests.support.databases import as_our_database, empty_database
from tests.support.demo_team import make_demo_team
from tests.support.factories import make_personas

#: Of each table its rows; of sequences their places; of rules what PostgreSQL says of them.
RULES = """
SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT conrelid::regclass || pg_get_constraintdef(oid) FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT format('%s %s', sequencename, last_value) FROM pg_sequences ORDER BY 1
"""


@pytest.fixture
def empty() -> Iterator[str]:
    with empty_database() as url:
        yield url


@pytest.fixture
def small(transactional_db: None, tmp_path: Path) -> Path:
    """A backup of little: a team with a sealed key."""
    add_credential(member=make_personas().alice, name="lab key")
    return back_up(tmp_path)


def back_up(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "pitwall.backup"
    call_command("backup", path, quiet=True, stdout=StringIO())
    return path


def restore(path: Path, url: str, **options: Any) -> str:
    output = StringIO()
    with as_our_database(url):
        call_command("restore", path, quiet=True, stdout=output, stderr=output, **options)
    return output.getvalue()


def contents(url: str | None = None) -> dict[str, list[str]]:
    """All that a database holds, as text; bytes as hexadecimal digits, each of them."""
    if url is not None:
        with as_our_database(url):
            return contents()
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        names = [name for (name,) in cursor.fetchall()]
        queries = {name: f'SELECT t::text FROM "{name}" t ORDER BY 1' for name in names}
        rows = {}
        for name, query in {**queries, "rules": RULES}.items():
            cursor.execute(query)
            rows[name] = [str(row) for (row,) in cursor.fetchall()]
    # PostgreSQL writes the casts within a condition in another way once it has read them again.
    rows["rules"] = sorted(
        re.sub(r"::(text|character varying)|[()\[\]]", "", each) for each in rows["rules"]
    )
    return rows


def changed(path: Path, **changes: Any) -> Path:
    """The same backup with another manifest."""
    other = path.with_name("changed.backup")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        manifest = json.loads(old.read("manifest.json"))
        new.writestr("database.dump", old.read("database.dump"))
        new.writestr("manifest.json", json.dumps({**manifest, **changes}))
    return other


def test_a_restored_database_has_the_same_rows_and_responses(
    transactional_db: None, empty: str, tmp_path: Path, data_dir: Path
) -> None:
    demo_team = make_demo_team(tmp_path)
    secret = create_token(member=demo_team.personas.alice, name="asks").secret
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    expected = request_comparison(client, secret, demo_team.shas)
    before = contents()
    path = back_up(tmp_path)
    output = restore(path, empty)
    assert "The backup is restored." in output
    after = contents(empty)
    assert after.keys() == before.keys()
    assert [name for name in before if before[name] != after[name]] == []
    assert len(before["results_reading"]) > 100
    for encoded in Histogram.objects.values_list("encoded", flat=True):
        assert any(bytes(encoded).hex() in row for row in after["results_histogram"])
    with as_our_database(empty):
        assert request_comparison(client, secret, demo_team.shas) == expected
    manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
    counted = {f"public.{name}": len(rows) for name, rows in before.items() if name != "rules"}
    assert manifest["tables"] == counted
    assert path.stat().st_mode & 0o777 == 0o600


def request_comparison(client: Client, secret: str, shas: list[str]) -> list[Any]:
    """A comparison, as a page and by the API; nothing is remembered from before."""
    forget_cached()
    forget_parts()
    sides = f"baseline={shas[0]}&contender={shas[1]}"
    page = client.get(f"/compare/?benchmark=server/many&{sides}")
    bearer = {"Authorization": f"Bearer {secret}"}
    answer = client.get(f"/api/v1/comparisons?benchmark=many&{sides}", headers=bearer)
    assert (page.status_code, answer.status_code) == (200, 200)
    assert len(answer.json()["cases"]) == 12
    return [
        answer.json(),
        re.sub(r'"csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"', "", page.text),
    ]


def test_restore_names_secrets_that_no_present_key_opens(
    small: Path, empty: str, settings: Any
) -> None:
    used = json.loads(zipfile.ZipFile(small).read("manifest.json"))["sealing_keys"]
    assert settings.SECRET_KEY.encode() not in small.read_bytes()
    settings.SECRET_KEY = "another-secret-key-of-another-place-0123456789"
    with pytest.raises(CommandError, match=rf"(?s)not all secrets can be decrypted.*{used[0]}"):
        restore(small, empty)
    assert len(contents(empty)["fleet_credential"]) == 1, "all the same it is restored"


def test_restored_tokens_are_valid_again_unless_they_are_revoked(
    transactional_db: None, empty: str, tmp_path: Path
) -> None:
    """Each is tried by its own secret, in the restored database."""
    alice = make_personas().alice
    project = Project.objects.create(team=alice.team, slug="server", name="Server")
    token = create_token(member=alice, name="of a thief").secret
    invitation = create_invitation(member=alice, role=Role.OWNER).secret
    link = new_secret(Kind.SHARED_LINK)
    ShareLink.objects.create(
        project=project, page="run", title="A run", prefix=link.beginning, digest=link.digest,
        created_at=utc_now(), expires_at=utc_now() + timedelta(days=9),
    )  # fmt: skip
    browser = Client()
    browser.force_login(alice.user)
    bearer = {"Authorization": f"Bearer {token}"}

    def opens() -> list[bool]:
        return [
            Client().get("/api/v1/runs", headers=bearer).status_code == 200,
            browser.get("/runs/").status_code == 200,
            _is_good(load_invitation, invitation),
            _is_good(use_share_link, link.text),
        ]

    path = back_up(tmp_path)
    ApiToken.objects.update(revoked_at=utc_now())
    restore(path, empty)
    with as_our_database(empty):
        assert opens() == [True] * 4, "the backup is older than that they were revoked"
    assert "are revoked" in restore(path, empty, replace=True, revoke_tokens=True)
    with as_our_database(empty):
        assert opens() == [False] * 4
        assert User.objects.filter(username="alice").exists()
        assert ApiToken.objects.count() == 1, "pages show that it was revoked"


def _is_good(look_up: Callable[[str], Any], secret: str) -> bool:
    try:
        look_up(secret)
    except PitwallError:
        return False
    return True


FORMER = "the-former-secret-key-of-the-other-machine-012345"


@pytest.mark.parametrize(
    ("sealed_with", "advice"),
    [
        (
            {"SECRET_KEY": FORMER},
            r"secret-key-\w+: add the former PITWALL_SECRET_KEY to (?P<name>\w+_FALLBACKS)$",
        ),
        pytest.param(
            {"SEALING_KEYS": [("2025", FORMER)]},
            r"2025: add 2025:SECRET, with its secret, to the end of (?P<name>\w+)$",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_restore_names_the_variable_that_takes_the_missing_key(
    sealed_with: dict[str, Any], advice: str, transactional_db: None, tmp_path: Path, empty: str
) -> None:
    """The check that the error names runs in a new environment, which validates each variable."""
    new_key = "a-new-secret-key-of-the-machine-that-restores-1"
    with override_settings(**sealed_with):
        add_credential(member=make_personas().alice, name="lab")
        path = back_up(tmp_path)
    with override_settings(SECRET_KEY=new_key), pytest.raises(CommandError) as refused:
        restore(path, empty)
    (name,) = re.findall(rf"(?m)^  {advice}", str(refused.value))
    (check,) = re.findall("`manage.py ([^`]+)`", str(refused.value))
    here = {"PITWALL_SECRET_KEY": new_key}
    value = f"2025:{FORMER}" if name == "PITWALL_SEALING_KEYS" else FORMER
    missing = manage(empty, here, *check.split())
    assert missing.returncode == 1
    assert name in missing.stderr, "the check names the same variable"
    done = manage(empty, {**here, name: value}, *check.split())
    assert (done.returncode, done.stderr) == (0, "")


def manage(database: str, given: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """A management command in an environment without other settings of Pitwall."""
    kept = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "REDIS_URL", "PITWALL_PG_BIN")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *argv],
        cwd=CHECKOUT, env={**env, "DATABASE_URL": database, **given}, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip


def test_restore_replaces_existing_data_only_on_request(small: Path, empty: str) -> None:
    restore(small, empty)
    before = contents(empty)
    with as_our_database(empty), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE of_a_later_pitwall (id int REFERENCES accounts_team)")
        cursor.execute("DELETE FROM fleet_credential")
    with pytest.raises(CommandError, match=r"is not empty.*--replace"):
        restore(small, empty)
    assert contents(empty)["fleet_credential"] == []
    with psycopg.connect(empty), pytest.raises(CommandError, match="1 other sessions use"):
        restore(small, empty, replace=True)
    restore(small, empty, replace=True)
    assert contents(empty) == before


def test_restore_of_a_damaged_file_changes_nothing(small: Path, empty: str) -> None:
    whole = small.read_bytes()
    place = whole.index(b"PGDMP") + len(whole) // 2
    small.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(CommandError, match="damaged"):
        restore(small, empty)
    with pytest.raises(CommandError, match="damaged"):
        restore(small, empty, check=True)
    small.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match="is truncated"):
        restore(small, empty)
    small.write_bytes(whole)
    tables = json.loads(zipfile.ZipFile(small).read("manifest.json"))["tables"]
    fewer = changed(small, tables={**tables, "public.accounts_team": 7})
    with pytest.raises(CommandError, match="accounts_team does not have the 7 rows of the backup"):
        restore(fewer, empty)
    assert contents(empty) == {"rules": []}


def test_restore_refuses_a_newer_version_and_reports_needed_migrations(
    small: Path, empty: str
) -> None:
    applied = json.loads(zipfile.ZipFile(small).read("manifest.json"))["migrations"]
    newer = changed(small, migrations=[*applied, "runs.0999_of_next_year"])
    with pytest.raises(CommandError, match=r"made by a newer Pitwall.*runs.0999_of_next_year"):
        restore(newer, empty)
    with pytest.raises(CommandError, match=r"from PostgreSQL 99.1.*cannot restore it"):
        restore(changed(small, postgresql="99.1"), empty)
    with pytest.raises(CommandError, match="a backup of format version 2"):
        restore(changed(small, version=2), empty)
    assert contents(empty) == {"rules": []}
    restore(small, empty)
    with as_our_database(empty), connection.cursor() as cursor:
        last = "SELECT max(name) FROM django_migrations WHERE app = 'runs'"
        cursor.execute(f"DELETE FROM django_migrations WHERE app = 'runs' AND name = ({last})")
        older = back_up(small.parent / "older")
    output = restore(older, empty, replace=True)
    assert "1 migrations are missing. Run `manage.py migrate`" in output


def test_a_failed_backup_leaves_no_file(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = back_up(tmp_path)
    with pytest.raises(CommandError, match="already exists"):
        back_up(tmp_path)
    path.unlink()
    # Our own session is there already; that of pg_dump is refused.
    monkeypatch.setenv("PGOPTIONS", "-c there_is_no_such_setting=1")
    with pytest.raises(CommandError, match=r"pg_dump failed.*there_is_no_such_setting"):
        back_up(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_backup_needs_programs_of_the_server_version(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_list_folders", lambda: iter([tmp_path]))
    with pytest.raises(CommandError, match=r"found here: none\. Install postgresql-client-"):
        back_up(tmp_path)
