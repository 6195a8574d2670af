"""A run that a CI has started is reported on its pull request."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from orchestrator.forges.models import PullRequest
from orchestrator.forges.pr_sync import LOOK_EVERY
from orchestrator.forges.services import NewConnection, save_connection
from orchestrator.runs.models import Run
from tests.support.factories import finish_run, make_run
from tests.support.fetches import follow_pulls
from tests.support.http_servers import StandIn, serve_stand_in


@pytest.fixture
def forge(world: Any, settings: Any) -> Iterator[StandIn]:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    with serve_stand_in("github") as stand_in:
        new = NewConnection(
            kind="github", repository="ada/server", api_url=stand_in.url, token="s3cret"
        )
        project = world.personas.alice.team.projects.get()
        save_connection(member=world.personas.alice, project=project, new=new)
        yield stand_in


@pytest.fixture
def run(world: Any) -> Run:
    return make_run(world.personas.alice, world.shas[:2], rounds=6)


def test_a_run_is_reported_until_it_has_ended(
    world: Any, alice: Any, forge: StandIn, run: Run
) -> None:
    answer = alice.post(f"runs/{run.pk}/pull-request", {"number": 5})
    assert answer.status_code == 202
    assert answer.json()["repository"] == "ada/server"
    assert answer.json()["web_url"].endswith("/projects/server/forge")
    follow_pulls()
    assert "the run is queued" in forge.comments[1001]

    finish_run(run, [1000, 850])
    assert alice.post(f"runs/{run.pk}/pull-request", {"number": 5}).status_code == 202
    follow_pulls(LOOK_EVERY)
    assert list(forge.comments) == [1001]
    assert "▼ regressed" in forge.comments[1001]
    assert [(sha, each["state"]) for sha, each in forge.statuses] == [
        (world.shas[1], "pending"),
        (world.shas[1], "failure"),
    ]
    assert alice.post(f"runs/{run.pk}/pull-request", {"number": 6}).status_code == 409


def test_viewers_strangers_and_invalid_numbers_are_refused(
    alice: Any, bob: Any, mallory: Any, forge: StandIn, run: Run
) -> None:
    path = f"runs/{run.pk}/pull-request"
    assert bob.post(path, {"number": 5}).status_code == 403
    assert mallory.post(path, {"number": 5}).status_code == 404
    assert alice.post(f"runs/{uuid4()}/pull-request", {"number": 5}).status_code == 404
    for number in (0, 2**31, "five", None):
        assert alice.post(path, {"number": number}).status_code == 422
    assert not PullRequest.objects.exists()


def test_a_connection_and_two_commits_are_required(world: Any, alice: Any, run: Run) -> None:
    answer = alice.post(f"runs/{run.pk}/pull-request", {"number": 5})

    assert answer.status_code == 404
    assert "not connected with a forge" in answer.json()["detail"]
