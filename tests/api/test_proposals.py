"""A repository is inspected, its proposal is tried once and saved through the API."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Run
from tests.api.conftest import ApiClient
from tests.support.engine import server
from tests.support.factories import commit_files, git, make_repository
from tests.support.fetches import fetch_now
from tests.support.world import World

TRY = "benchmarks/shop/shop/try"


@pytest.fixture
def shop(world: World, tmp_path: Path) -> Project:
    """A project whose default branch has a server; its tag `empty` has none."""
    folder = tmp_path / "shop"
    make_repository(folder, [{"README.md": "A shop"}])
    git(folder, "tag", "empty")
    commit_files(folder, server(), 1)
    project = create_project(
        member=world.alice, slug="shop", name="Shop", repository_url=str(folder)
    )
    fetch_now(project)
    return project


def test_a_proposal_is_tried_and_saved(shop: Project, alice: ApiClient) -> None:
    proposal = alice.get("projects/shop/proposal").json()
    source = proposal["source"]
    assert proposal["commit"]["commit"] == shop.commits.get(position=1).sha
    assert "'{python}', server.py, --bind, '{bind}', --port, '{port}'" in source
    start = next(each for each in proposal["guesses"] if each["field"] == "subject.start")
    assert start == {"field": "subject.start", "reason": "from server.py", "doubtful": False}
    assert alice.post("definitions/check", {"source": source}).json()["valid"]

    answer = alice.post(TRY, {"source": source, "host": "here"})

    assert answer.status_code == 201
    assert (answer.json()["trials_total"], answer.json()["state"]) == (1, "queued")
    assert answer.headers["Location"] == answer.json()["url"]
    run = Run.objects.get()
    assert run.variants.get().commit.sha == proposal["commit"]["commit"]
    assert alice.get("benchmarks/shop/shop").json()["draft"] is True
    listed = alice.get("benchmarks").json()["benchmarks"]
    assert [each["benchmark"] for each in listed] == ["hello"]
    assert alice.get("projects/shop").json()["benchmarks"] == []

    saved = alice.post("benchmarks/shop/shop/definitions", {"source": source})

    assert (saved.status_code, saved.json()["version"]) == (201, 1)
    assert alice.get("benchmarks/shop/shop").json()["draft"] is False
    refused = alice.post(TRY, {"source": source, "host": "here"})
    assert refused.status_code == 409
    assert "already has a benchmark shop" in refused.json()["detail"]


def test_another_commit_is_inspected_and_tried(shop: Project, alice: ApiClient) -> None:
    empty = alice.get("projects/shop/proposal", ref="empty").json()
    assert (empty["source"], empty["guesses"]) == (None, [])
    assert empty["commit"]["subject"] == shop.commits.get(position=0).subject
    unknown = alice.get("projects/shop/proposal", ref="nowhere")
    assert unknown.status_code == 422
    assert "nowhere" in unknown.json()["detail"]

    source = alice.get("projects/shop/proposal").json()["source"]
    alice.post(TRY, {"source": source, "host": "here", "ref": "empty"})
    assert Run.objects.get().variants.get().commit.sha == empty["commit"]["commit"]


def test_a_repeated_trial_with_the_same_key_starts_one_run(shop: Project, alice: ApiClient) -> None:
    body = {"source": alice.get("projects/shop/proposal").json()["source"], "host": "here"}
    first, again = (alice.post(TRY, body, key="one") for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "version: 1\ntitle: Shop\n"}, "subject"),
        ({"host": "nowhere"}, "host"),
        ({"ref": "nowhere"}, "ref"),
        ({"rounds": 3}, "rounds"),
    ],
)
def test_a_mistake_is_named_with_its_field_and_leaves_no_draft(
    shop: Project, alice: ApiClient, changes: dict[str, object], field: str
) -> None:
    source = alice.get("projects/shop/proposal").json()["source"]
    refused = alice.post(TRY, {"source": source, "host": "here", **changes})
    assert refused.status_code == 422
    assert refused.json()["field"] == field
    assert not Benchmark.objects.filter(slug="shop").exists()


def test_viewers_inspect_and_do_not_try_and_strangers_do_neither(
    shop: Project, alice: ApiClient, bob: ApiClient, mallory: ApiClient
) -> None:
    source = bob.get("projects/shop/proposal").json()["source"]
    body = {"source": source, "host": "here"}
    assert bob.post(TRY, body).status_code == 403
    assert mallory.get("projects/shop/proposal").status_code == 404
    assert mallory.post(TRY, body).status_code == 404
    assert not Run.objects.exists()
    alice.post(TRY, body)
    assert mallory.get("benchmarks/shop/shop").status_code == 404
