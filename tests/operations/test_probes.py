"""What watches Pitwall is answered: whether it lives, whether it is ready."""

import pytest
from django.db import connection

from orchestrator.database.shared_redis import connect_redis
from orchestrator.operations import health_check, readiness
from orchestrator.operations.heartbeats import (
    build_process_name,
    delete_heartbeat,
    record_heartbeat,
)

#: As a probe by address does, which is no name of PITWALL_ALLOWED_HOSTS.
STRANGE = {"headers": {"host": "10.9.8.7:8000"}}
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def no_cached_readiness(monkeypatch):
    monkeypatch.setattr(readiness, "RECENT_S", 0.0)


@pytest.fixture
def redis():
    return connect_redis()


def test_liveness_needs_no_database_and_accepts_any_host_name(client):
    # No fixture of the database: a query here would fail the test.
    answer = client.get("/healthz", **STRANGE)
    assert (answer.status_code, answer.content) == (200, b"alive\n")
    assert answer.headers["Cache-Control"] == "no-store"
    assert client.get("/", **STRANGE).status_code == 400
    assert client.post("/healthz").status_code == 405


@pytest.mark.django_db
def test_readiness_reports_missing_services(client, redis, own_queue):
    answer = client.get("/readyz", **STRANGE)
    silent = "none sent a heartbeat within 30 s"
    parts = {"database": "ok", "migrations": "ok", "redis": "ok"}
    parts |= dict.fromkeys(("worker", "background", "beat"), silent)
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "parts": parts})
    assert client.get("/readyz?engine").status_code == 503
    for kind in ("worker", "background", "beat"):
        record_heartbeat(redis, own_queue, kind, build_process_name())
    answer = client.get("/readyz?engine")
    assert (answer.status_code, set(answer.json()["parts"].values())) == (200, {"ok"})


@pytest.mark.django_db
def test_readiness_fails_without_redis_or_with_a_pending_migration(client, settings, monkeypatch):
    settings.CELERY_BROKER_URL = NOBODY
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["redis"]) == (503, "does not answer")
    monkeypatch.setattr(readiness, "_migrated", False)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'runs'")
    assert "not applied: manage.py migrate" in client.get("/readyz").json()["parts"]["migrations"]


@pytest.mark.django_db
def test_concurrent_probes_share_one_check(client, settings, monkeypatch):
    before = client.get("/readyz").json()
    monkeypatch.setattr(readiness, "RECENT_S", 3600.0)
    settings.CELERY_BROKER_URL = NOBODY
    assert client.get("/readyz").json() == before
    monkeypatch.setattr(readiness, "RECENT_S", 0.0)
    assert client.get("/readyz").json() != before


def test_a_container_is_unhealthy_without_a_worker_heartbeat(redis, own_queue, monkeypatch, capsys):
    monkeypatch.setenv("PITWALL_QUEUE", own_queue)
    monkeypatch.setattr("sys.argv", ["alive", "worker"])
    record_heartbeat(redis, own_queue, "worker", "another-machine:1")
    assert health_check.main() == 1
    assert "no worker of" in capsys.readouterr().out
    record_heartbeat(redis, own_queue, "worker", build_process_name())
    assert health_check.main() == 0
    delete_heartbeat(redis, own_queue, "worker", build_process_name())
    assert health_check.main() == 1
    monkeypatch.setenv("REDIS_URL", NOBODY)
    assert health_check.main() == 0, "a restart of the worker does not fix Redis"
