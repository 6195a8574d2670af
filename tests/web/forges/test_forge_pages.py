"""Connecting a project with its forge, what the forge sends, and who may approve what."""

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Fetch
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.background_tasks import claim_schedules
from orchestrator.forges.models import BenchmarkRequest, Connection, PullRequest
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.schedules import NewSchedule, create_schedule
from tests.support.factories import commit_files
from tests.support.fetches import run_fetches
from tests.support.html_pages import elements, shown_secret
from tests.support.world import World

PAGE = "/projects/server/forge"
FIELDS = {
    "kind": "github",
    "repository": "ada/server",
    "api_url": "",
    "token": "s3cret-token",
    "allowed_users": "grace, @ada",
    "hosts": "here",
    "budget_minutes": "30",
}


def connect(client: Client, **changes: str) -> str:
    """The secret of the webhook, from the page that shows it."""
    return shown_secret(client.post(PAGE, {**FIELDS, **changes}))


def send(secret: str, data: Any, event: str = "push", delivery: str = "d-1", **more: Any) -> Any:
    """As GitHub sends it: no session, no token."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={signed}",
        **more,
    }
    address = reverse("forge-hook", args=[Connection.objects.get().pk])
    client = Client(enforce_csrf_checks=True)
    return client.post(address, body, content_type="application/json", headers=headers)


def due_schedules() -> int:
    return Schedule.objects.filter(next_at__lte=utc_now()).count()


PUSH = {"ref": "refs/heads/main", "repository": {"full_name": "Ada/Server"}}


@pytest.fixture
def schedule(world: World) -> Schedule:
    new = NewSchedule(name="each", branch="main", benchmark="hello", hosts=("here",))
    return create_schedule(member=world.alice, new=new)


def test_a_push_is_fetched_and_its_commits_are_queued_immediately(
    world: World, alice: Client, schedule: Schedule, tmp_path: Any
) -> None:
    secret = connect(alice)
    sha = commit_files(tmp_path / "repository", {"file.txt": "new\n"}, 9)
    before = Run.objects.count()
    assert due_schedules() == 0

    answer = send(secret, PUSH)
    assert (answer.status_code, answer.content) == (
        200,
        b"fetching main, then 1 schedule\n",
    )
    assert due_schedules() == 1
    claim_schedules()
    assert Run.objects.count() == before, "it waits for the fetch"
    run_fetches()
    claim_schedules()
    assert Run.objects.count() == before + 1
    assert Run.objects.latest("created_at").variants.last().commit.sha == sha
    project = world.run.definition.benchmark.project
    project.refresh_from_db()
    assert project.branches[0] == ["main", sha]
    assert "fetching main" in alice.get(PAGE).content.decode()


def test_a_webhook_is_processed_once(world: World, alice: Client, schedule: Schedule) -> None:
    secret = connect(alice)
    send(secret, PUSH)
    Schedule.objects.update(next_at=utc_now() + timedelta(hours=1))

    assert send(secret, PUSH).content == b"ignored: it was already received\n"
    assert due_schedules() == 0
    send(secret, PUSH, delivery="d-2")
    assert due_schedules() == 1


def test_a_replayed_push_with_another_id_starts_nothing(
    world: World, alice: Client, schedule: Schedule, tmp_path: Any
) -> None:
    """The id of a delivery is in a header, which the forge does not sign."""
    secret = connect(alice)
    commit_files(tmp_path / "repository", {"file.txt": "new\n"}, 9)
    before = Run.objects.count()
    for number in range(3):
        assert send(secret, PUSH, delivery=f"d-{number}").content.startswith(b"fetching main")
        assert Fetch.objects.exclude(next_at=None).count() == 1
        claim_schedules()
        run_fetches()
        claim_schedules()
        assert Run.objects.count() == before + 1, "of the new commit, once"


def test_the_repository_of_a_payload_is_not_trusted(
    world: World, alice: Client, schedule: Schedule
) -> None:
    secret = connect(alice)
    url = {"full_name": "eve/server", "clone_url": "https://evil.example/x.git"}
    answer = send(secret, {**PUSH, "repository": url})

    assert answer.content.startswith(b"ignored: it is from eve/server")
    assert due_schedules() == 0
    assert not Fetch.objects.exclude(next_at=None).exists()


def test_an_unsigned_webhook_is_refused(world: World, alice: Client) -> None:
    secret = connect(alice)

    assert send("pwforge_other", PUSH).status_code == 403
    assert send(secret, PUSH, **{"X-Hub-Signature-256": ""}).status_code == 403
    assert send(secret, b"{").status_code == 400
    assert send(secret, b"x" * 5_000_001).status_code == 413
    assert not Connection.objects.get().webhooks.exists()
    assert Client().post(reverse("forge-hook", args=[uuid4()])).status_code == 404
    assert Client().get(reverse("forge-hook", args=[uuid4()])).status_code == 405


def test_the_secret_is_shown_once_and_the_token_never(world: World, alice: Client) -> None:
    secret = connect(alice)
    page = alice.get(PAGE)
    connection = Connection.objects.get()

    assert secret not in page.content.decode()
    assert "s3cret-token" not in page.content.decode()
    assert connection.api_url == "https://api.github.com"
    assert connection.allowed_users == ["grace", "ada"]
    assert b"s3cret-token" not in bytes(connection.sealed_token)
    # Saved again without a token, it keeps the one that it has; elsewhere it is not sent.
    saved = alice.post(PAGE, {**FIELDS, "token": "", "hosts": "tag:lab"})
    assert saved.status_code == 302
    elsewhere = alice.post(PAGE, {**FIELDS, "token": "", "api_url": "https://140.82.121.4"})
    assert elsewhere.status_code == 422
    connection.refresh_from_db()
    assert connection.hosts == ["tag:lab"]
    assert bytes(connection.sealed_token) == bytes(Connection.objects.get().sealed_token)
    assert send(secret, PUSH).status_code == 200


def test_a_new_secret_invalidates_the_old_one(world: World, alice: Client) -> None:
    old = connect(alice)
    new = shown_secret(alice.post(f"{PAGE}/secret"))

    assert send(old, PUSH).status_code == 403
    assert send(new, PUSH).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repository", "server"),
        ("repository", "ada/../x y"),
        ("api_url", "http://169.254.169.254/"),
        ("api_url", "https://127.0.0.1/api/v1"),
        ("kind", "bitbucket"),
        ("allowed_users", "a b"),
        ("budget_minutes", "0"),
    ],
)
def test_invalid_connections_are_refused(
    world: World, alice: Client, field: str, value: str
) -> None:
    answer = alice.post(PAGE, {**FIELDS, field: value})

    assert answer.status_code == 422
    assert not Connection.objects.exists()


def waiting() -> BenchmarkRequest:
    pull = PullRequest.objects.create(connection=Connection.objects.get(), number=5)
    return BenchmarkRequest.objects.create(
        pull=pull, note_id="7", requested_by="grace", benchmark="hello", head_sha="a" * 40,
        from_fork=True, state="waiting", at=utc_now(),
    )  # fmt: skip


def test_a_member_approves_the_commit_of_a_fork_on_the_page(world: World, alice: Client) -> None:
    connect(alice)
    request = waiting()
    page = alice.get(PAGE).content.decode()
    address = reverse("forge-answer", args=[request.pk])
    assert address in page
    assert alice.post(address, {"answer": "approve", "sha": "b" * 40}).status_code == 409
    assert alice.post(address, {"answer": "approve", "sha": "a" * 40}).status_code == 302

    request.refresh_from_db()
    assert (request.state, request.approved_by) == ("approved", world.alice.user)
    assert AuditEntry.objects.filter(action="benchmark_request.approved").count() == 1


def test_viewers_read_connections_and_strangers_do_not(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    connect(alice)
    request = waiting()
    answer = reverse("forge-answer", args=[request.pk])
    page = bob.get(PAGE)

    assert "ada/server" in page.content.decode()
    assert elements(page, "main form") == []
    for path, data in [
        (PAGE, FIELDS), (f"{PAGE}/secret", {}), (f"{PAGE}/remove", {}),
        (answer, {"answer": "approve", "sha": "a" * 40}), (answer, {"answer": "decline"}),
    ]:  # fmt: skip
        assert bob.post(path, data).status_code == 403
        assert mallory.post(path, data).status_code == 404
    assert mallory.get(PAGE).status_code == 404
    request.refresh_from_db()
    assert request.state == "waiting"
    assert Connection.objects.count() == 1


def test_a_connection_is_removed(world: World, alice: Client) -> None:
    connect(alice)
    alice.post(f"{PAGE}/remove")

    assert not Connection.objects.exists()
    assert alice.post(f"{PAGE}/remove").status_code == 404
