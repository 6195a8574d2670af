"""Requests that name branches wait for a fetch: how a client sees that."""

from typing import Any

from django.test import Client

from orchestrator.benchmarks.models import Fetch
from orchestrator.benchmarks.refs import TRIES
from orchestrator.runs.models import Run
from tests.api.conftest import ApiClient
from tests.support import factories
from tests.support.fetches import run_fetches
from tests.support.world import World


def ask(client: ApiClient, path: str, body: Any, key: str = "") -> Any:
    """One request, which nobody repeats."""
    headers = {"Authorization": f"Bearer {client.secret}"}
    headers |= {"Idempotency-Key": key} if key else {}
    return Client().post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)


def test_a_run_of_a_branch_waits_for_a_fetch_after_the_request(
    world: World, alice: ApiClient
) -> None:
    newest = factories.commit_files(world.repository, {"file.txt": "new"}, 9)
    wanted = world.run_body(baseline="main~1", contenders=["main"])
    for _ in range(2):
        answer = ask(alice, "runs", wanted, "k1")
        assert (answer.status_code, answer["Retry-After"]) == (503, "1")
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["type"] == "fetch-running"
        assert answer.json()["detail"].startswith("the repository of server is being fetched")
    assert not Run.objects.exists()
    run_fetches()
    answer = ask(alice, "runs", wanted, "k1")
    assert answer.status_code == 201
    assert newest in str(answer.json())
    assert ask(alice, "runs", wanted, "k1").status_code == 200, "the repeat needs no fetch"
    assert ask(alice, "runs", wanted, "k2").status_code == 503, "another request does"


def test_known_hashes_need_no_fetch(world: World, alice: ApiClient) -> None:
    short = world.run_body(baseline=world.shas[0][:8], contenders=[world.shas[1]])
    assert ask(alice, "runs", short).status_code == 201
    assert not Fetch.objects.exclude(next_at=None).exists()


def test_a_failed_fetch_fails_the_request(world: World, alice: ApiClient) -> None:
    world.repository.rename(world.repository.parent / "away")
    wanted = world.run_body(contenders=["main"])
    assert ask(alice, "runs", wanted).status_code == 503
    for _ in range(TRIES):
        answer = ask(alice, "runs", wanted)
        assert answer.status_code == 503
        run_fetches()
    assert "the last attempt failed: git cannot read" in answer.json()["detail"]
    answer = ask(alice, "runs", wanted)
    assert answer.status_code == 422
    assert "could not be fetched: git cannot read" in answer.json()["detail"]
    assert str(world.repository) not in answer.json()["detail"]


def test_a_plan_uses_refs_of_the_last_fetch(world: World, bob: ApiClient) -> None:
    """A preview waits for no fetch if the name is known."""
    factories.commit_files(world.repository, {"file.txt": "new"}, 9)
    wanted = world.run_body(baseline="main~1", contenders=["main"])
    assert ask(bob, "runs/plan", wanted).status_code == 200
    assert not Fetch.objects.exclude(next_at=None).exists()
    unknown = world.run_body(contenders=["topic"])
    assert ask(bob, "runs/plan", unknown).status_code == 503
    run_fetches()
    answer = ask(bob, "runs/plan", unknown)
    assert answer.status_code == 422
    assert "there is no commit, branch or tag topic" in answer.json()["detail"]
