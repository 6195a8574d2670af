"""The doctor finds what is wrong, says how to fix it, and fails where something must be."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from orchestrator.database.shared_redis import connect_redis
from orchestrator.fleet.services import add_credential
from orchestrator.operations.doctor_servers import check_database_role, check_database_settings
from orchestrator.operations.heartbeats import record_heartbeat
from orchestrator.operations.management.commands import doctor as command
from orchestrator.operations.management.commands.doctor import CHECKS

pytestmark = pytest.mark.django_db

SMTP = "django.core.mail.backends.smtp.EmailBackend"


@pytest.fixture
def deployed(settings, tmp_path, own_queue):
    """Settings of a server as it should be; PostgreSQL and Redis are real."""
    settings.DEBUG = False
    settings.SECRET_KEY_IS_GIVEN = True
    settings.SECRET_KEY = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"
    settings.BASE_URL, settings.HTTPS = "https://bench.example.org", True
    settings.ALLOWED_HOSTS = ["bench.example.org"]
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    settings.ALLOW_LOCAL_REPOSITORIES = False
    settings.ALLOW_LOCAL_HOST = False
    settings.METRICS_TOKEN = "a-token-of-some-length"
    settings.DATA_DIR = tmp_path / "data"
    settings.STATIC_ROOT = str(tmp_path)
    (tmp_path / "staticfiles.json").write_text("{}")
    redis = connect_redis()
    for kind in ("worker", "beat", "background"):
        record_heartbeat(redis, own_queue, kind, "machine:1")
    return settings


@pytest.fixture
def waits_for_its_disk(monkeypatch):
    """The tests' own PostgreSQL does not, its role is a superuser, and the doctor would say so."""
    others = tuple(
        each for each in CHECKS if each not in (check_database_settings, check_database_role)
    )
    monkeypatch.setattr(command, "CHECKS", others)


def findings(capsys, *, healthy):
    if healthy:
        call_command("doctor", "--json")
    else:
        with pytest.raises(CommandError, match=r"\d+ to fix") as stopped:
            call_command("doctor", "--json")
        assert stopped.value.returncode == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] == healthy
    return {each["part"]: each for each in report["findings"]}


def test_the_doctor_finds_a_database_without_durability(deployed, capsys):
    with connection.cursor() as cursor:
        cursor.execute("SHOW fsync")
        waits = cursor.fetchone()[0] == "on"
    parts = findings(capsys, healthy=waits)
    assert parts["durability"]["outcome"] == ("ok" if waits else "FIX")


def test_a_correct_deployment_passes(deployed, capsys, waits_for_its_disk):
    parts = findings(capsys, healthy=True)
    assert {each["outcome"] for each in parts.values()} == {"ok"}
    assert len(parts) >= len(CHECKS) - 3
    assert "1: machine:1" in parts["workers"]["message"]


MISTAKES = {
    "debug": ("debug", {"DEBUG": True}),
    "no key": ("secret key", {"SECRET_KEY_IS_GIVEN": False}),
    "short key": ("secret key", {"SECRET_KEY": "secret"}),
    "plain http": ("address", {"BASE_URL": "http://bench.example.org", "HTTPS": False}),
    "any host": ("allowed hosts", {"ALLOWED_HOSTS": ["*"]}),
    "another host": ("allowed hosts", {"ALLOWED_HOSTS": ["localhost"]}),
    "guessed token": ("metrics", {"METRICS_TOKEN": "secret"}),
    "no static files": ("static files", {"STATIC_ROOT": "/nowhere"}),
    "no data folder": ("data folder", {"DATA_DIR": "/proc/pitwall"}),
    "no Redis": ("Redis", {"CELERY_BROKER_URL": "redis://127.0.0.1:1/0"}),
    "another queue": ("workers", {"CELERY_TASK_DEFAULT_QUEUE": "nobody-listens"}),
    "no mail server": (
        "mail server",
        {"EMAIL_BACKEND": SMTP, "EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": 1},
    ),
}


@pytest.mark.parametrize(("part", "changes"), MISTAKES.values(), ids=MISTAKES)
def test_the_doctor_finds_an_error_and_names_the_fix(deployed, capsys, part, changes):
    for name, value in changes.items():
        setattr(deployed, name, value)
    parts = findings(capsys, healthy=False)
    assert parts[part]["outcome"] == "FIX"
    assert parts[part]["remedy"]


def test_the_doctor_finds_secrets_without_a_key_and_pending_migrations(deployed, personas, capsys):
    add_credential(member=personas.alice, name="key")
    deployed.SECRET_KEY = deployed.SECRET_KEY[::-1]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'runs'")
    parts = findings(capsys, healthy=False)
    assert parts["sealed secrets"]["message"].startswith("1 cannot be decrypted")
    assert "runs.0001_initial" in parts["migrations"]["message"]


def test_the_text_output_has_a_line_for_each_check_with_its_fix(deployed, capsys):
    deployed.DEBUG = True
    with pytest.raises(CommandError):
        call_command("doctor")
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("FIX     debug:"))
    assert lines[at + 1] == "        -> PITWALL_DEBUG=0"


def test_the_document_lists_every_check():
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    for check in CHECKS:
        assert f"`{check.__name__.removeprefix('check_')}`" in text
