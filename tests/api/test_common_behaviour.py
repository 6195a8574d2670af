"""What holds for every operation: rates, entity tags, known parameters, the type of a body."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestrator.database.redis_server import connect_redis_server
from orchestrator.fleet.models import Host
from orchestrator.retention.delete_rows import remove_trials
from orchestrator.runs.models import HostLease, IdempotencyKey, Schedule
from tests.api.test_schedules import build_schedule_body


def test_the_rate_limit_is_reported_and_enforced(world, alice, settings):
    settings.API_REQUESTS_A_MINUTE = 3
    answers = [alice.get("runs") for _ in range(4)]
    assert [each["RateLimit-Limit"] for each in answers] == ["3"] * 4
    assert [each.status_code for each in answers].count(429) >= 1 or len(
        {each["RateLimit-Reset"] for each in answers}
    ) > 1
    refused = answers[-1]
    if refused.status_code == 429:
        assert refused["RateLimit-Remaining"] == "0"
        assert refused["Retry-After"] == refused["RateLimit-Reset"]
        assert refused["Content-Type"] == "application/problem+json"
    settings.API_REQUESTS_A_MINUTE = 0
    free = alice.get("runs")
    assert free.status_code == 200
    assert "RateLimit-Limit" not in free


def test_without_redis_no_request_is_limited(alice, settings, monkeypatch):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr("orchestrator.operations.rates._counter._silent_until", 0.0)
    answer = alice.get("runs")
    assert answer.status_code == 200
    assert "RateLimit-Limit" not in answer
    monkeypatch.setattr("orchestrator.operations.rates._counter._silent_until", 0.0)
    assert (
        connect_redis_server(
            "redis+socket://%2Ftmp%2Fr.sock?virtual_host=2"
        ).connection_pool.connection_kwargs["path"]
        == "/tmp/r.sock"
    )


def test_an_unchanged_response_is_304(world, alice):
    run = world.measure_run(1000, 900)
    path = f"/api/v1/runs/{run.pk}"
    headers = {"Authorization": f"Bearer {alice.secret}"}
    first = Client().get(path, headers=headers)
    with CaptureQueriesContext(connection) as queries:
        again = Client().get(path, headers={**headers, "If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert len(queries) <= 2, "one for the token, one for the mark"
    remove_trials(run)
    changed = Client().get(path, headers={**headers, "If-None-Match": first["ETag"]})
    assert (changed.status_code, changed.json()["trials_total"]) == (200, 0)


def test_a_head_request_equals_get_without_a_body(world, alice, mallory, settings):
    path = f"/api/v1/runs/{world.measure_run(1000, 900).pk}"
    headers = {"Authorization": f"Bearer {alice.secret}"}
    settings.API_REQUESTS_A_MINUTE = 100
    whole, head = (Client().generic(each, path, headers=headers) for each in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (200, b"")
    for name in ("ETag", "Content-Type", "Content-Length", "RateLimit-Limit"):
        assert head[name] == whole[name]
    assert int(head["RateLimit-Remaining"]) == int(whole["RateLimit-Remaining"]) - 1
    known = Client().head(path, headers={**headers, "If-None-Match": whole["ETag"]})
    assert known.status_code == 304
    assert Client().head(path).status_code == 401
    of_blue = {"Authorization": f"Bearer {mallory.secret}"}
    assert Client().head(path, headers=of_blue).status_code == 404
    assert Client().head("/api/v1/audit/csv", headers=headers).status_code == 200
    assert Client().head("/api/v1/runs", {"stat": "x"}, headers=headers).status_code == 422


def test_a_cached_response_is_only_for_its_team(world, alice, mallory):
    path = f"runs/{world.measure_run(1000, 900).pk}"
    assert alice.get(path).status_code == 200
    assert mallory.get(path).status_code == 404


def test_a_waiting_run_is_reported_with_its_current_state(world, alice):
    run, other = world.queue_run(), world.queue_run()
    path = f"runs/{run.pk}"

    def waiting() -> str:
        return alice.get(path).json()["jobs"][0]["waiting"]

    assert waiting() == "in the queue of its hosts"
    with CaptureQueriesContext(connection) as queries:
        assert waiting() == "in the queue of its hosts"
    assert len(queries) == 2, "one for the token, one for the mark"
    host = run.jobs.get().host
    HostLease.objects.create(host=host, job=other.jobs.get())
    assert waiting() == "here is busy with another job"
    Host.objects.filter(pk=host.pk).update(state="quarantined", message="too noisy")
    assert waiting() == "here is quarantined: too noisy"
    HostLease.objects.all().delete()
    Host.objects.filter(pk=host.pk).update(state="ready", open_hours="mon 03:00-03:01")
    assert waiting() == "here is closed until the open hours begin"
    with CaptureQueriesContext(connection) as queries:
        waiting()
    assert len(queries) > 2, "its hours may begin without anything being written"


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("get", "runs", {"data": {"stat": "queued"}}, 422),
        ("delete", "runs", {}, 405),
        ("head", "runs/plan", {}, 405),
        ("post", "runs", {"data": "a=b", "content_type": "text/plain"}, 415),
        ("post", "results/files", {"data": "{}", "content_type": "application/json"}, 415),
        ("post", "runs", {"data": b"x" * 3_000_000, "content_type": "application/json"}, 413),
        ("post", "results/files", {"data": b"x", "content_type": "multipart/form-data"}, 400),
    ],
)
def test_every_refusal_is_a_problem_document(alice, method, path, options, status):
    headers = {"Authorization": f"Bearer {alice.secret}"}
    answer = getattr(Client(), method)(f"/api/v1/{path}", headers=headers, **options)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    if method != "head":
        assert answer.json()["status"] == status
    if status == 405:
        assert answer["Allow"] == ("POST" if method == "head" else "GET, HEAD, POST")


def test_an_idempotency_key_creates_one_object(alice, mallory):
    first = alice.post("schedules", build_schedule_body(), key="k")
    again = alice.post("schedules", build_schedule_body(), key="k")
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.json(), again["Idempotency-Replayed"]) == (again.json(), "true")
    assert Schedule.objects.count() == 1
    assert alice.post("schedules", build_schedule_body(name="other"), key="k").status_code == 409
    assert mallory.post("schedules", build_schedule_body(), key="k").status_code == 404
    # A refused request has not used its key up.
    assert (
        alice.post("schedules", build_schedule_body(cron="never", name="b"), key="l").status_code
        == 422
    )
    assert alice.post("schedules", build_schedule_body(name="b"), key="l").status_code == 201
    assert IdempotencyKey.objects.count() == 2
