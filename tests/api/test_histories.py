"""Histories of other tools through the API: sent, previewed, started or discarded."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from orchestrator.accounts.services import create_token
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Point, ResultImport
from tests.api.conftest import ApiClient
from tests.support.histories import build_data_js, run_imports
from tests.support.world import World


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget_cached()
    yield
    forget_cached()


def send(client: ApiClient, content: bytes, query: str = "project=server") -> Any:
    return Client(enforce_csrf_checks=True).post(
        f"/api/v1/results/histories?{query}",
        {"file": SimpleUploadedFile("data.js", content)},
        headers={"Authorization": f"Bearer {client.secret}"},
    )


def previewed(client: ApiClient, content: bytes) -> dict[str, Any]:
    answer = send(client, content)
    assert answer.status_code == 202, answer.content
    made = answer.json()
    assert answer["Location"] == made["url"]
    assert (made["state"], made["history"], made["preview"]) == ("queued", True, None)
    run_imports()
    report: dict[str, Any] = client.get(f"results/imports/{made['id']}").json()
    return report


def test_a_history_is_sent_previewed_and_started(world: World, alice: ApiClient) -> None:
    content = build_data_js([*world.shas, "e" * 40])
    report = previewed(alice, content)
    assert report["state"] == "ready"
    preview = report["preview"]
    assert (preview["format"], preview["values"]) == ("github-action-benchmark", 4)
    assert (preview["commits"], preview["matched"], preview["unknown_values"]) == (4, 3, 1)
    assert preview["unknown_commits"][0]["name"] == "e" * 40
    assert preview["first_at"] == "2025-03-01T12:00:00Z"
    start = f"results/imports/{report['id']}/start"
    assert alice.post(start, {}).status_code == 422
    assert alice.post(start, {"unknown_commits": "maybe"}).status_code == 422
    started = alice.post(start, {"unknown_commits": "keep"})
    assert (started.status_code, started.json()["state"]) == (202, "queued")
    run_imports()
    report = alice.get(f"results/imports/{report['id']}").json()
    assert (report["state"], report["total"], report["accepted"]) == ("done", 4, 4)
    assert Point.objects.count() == 4
    again = alice.post(start, {"unknown_commits": "keep"})
    assert (again.status_code, "is done" in again.json()["detail"]) == (409, True)
    assert alice.delete(f"results/imports/{report['id']}").status_code == 409


def test_a_history_is_discarded(world: World, alice: ApiClient) -> None:
    report = previewed(alice, build_data_js(world.shas))
    assert alice.delete(f"results/imports/{report['id']}").status_code == 204
    assert not ResultImport.objects.exists()


def test_wrong_options_are_refused_at_once(world: World, alice: ApiClient) -> None:
    content = build_data_js(world.shas)
    for query, status in (
        ("", 422),
        ("project=none", 404),
        ("project=server&format=excel", 422),
        ("project=server&format=k6", 422),
        ("project=server&better=up", 422),
        ("project=server&colour=red", 422),
    ):
        assert send(alice, content, query).status_code == status, query
    assert not ResultImport.objects.exists()


def test_a_history_that_cannot_be_read_fails_with_the_position(
    world: World, alice: ApiClient
) -> None:
    report = previewed(alice, b'{"entries": {"a": [{"date": "x"}]}}')
    assert (report["state"], report["preview"]) == ("failed", None)
    assert report["errors"][0]["field"] == "entries.a[0].date"


def test_viewers_strangers_and_tokens_of_another_project_import_nothing(
    world: World, alice: ApiClient, bob: ApiClient, mallory: ApiClient
) -> None:
    content = build_data_js(world.shas)
    assert send(bob, content).status_code == 403
    assert send(mallory, content).status_code == 404
    other = world.add_project()
    token = create_token(member=world.alice, name="ci", project=other.pk)
    assert send(ApiClient(secret=token.secret), content).status_code == 404
    report = previewed(alice, content)
    for client, status in ((bob, 403), (mallory, 404), (ApiClient(secret=token.secret), 404)):
        path = f"results/imports/{report['id']}"
        assert client.post(f"{path}/start", {"unknown_commits": "keep"}).status_code == status
        assert client.delete(path).status_code == status
    assert not Point.objects.exists()


def test_the_preview_of_a_large_generated_history_is_one_point_per_value(
    world: World, alice: ApiClient
) -> None:
    """As large as the real files: 26 series along 290 commits."""
    shas = [f"{number:040x}" for number in range(1, 291)]
    names = [f"http2_parallel_x10_{number}" for number in range(26)]
    content = build_data_js(shas, names=names, suite="end_to_end")
    values = len(json.loads(content.partition(b"= ")[2])["entries"]["end_to_end"]) * len(names)
    report = previewed(alice, content)
    assert report["preview"]["values"] == values == 7_540
    alice.post(f"results/imports/{report['id']}/start", {"unknown_commits": "keep"})
    run_imports()
    assert Point.objects.count() == values
