"""A project is connected with its forge through the API, and a fork's commit is approved there."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.test import Client

from orchestrator.accounts.models import AuditEntry
from orchestrator.forges.models import BenchmarkRequest, Connection
from orchestrator.forges.pr_sync import FETCH_LOOK_EVERY
from orchestrator.runs.models import Run
from tests.support.factories import commit_files, git
from tests.support.fetches import follow_pulls, run_fetches
from tests.support.http_servers import serve_stand_in
from tests.support.world import World

FORGE = "projects/server/forge"
PUSH = {"ref": "refs/heads/main", "repository": {"full_name": "ada/server"}}


@pytest.fixture(autouse=True)
def _own_networks(settings: Any) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]


def build_forge_body(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "github",
        "repository": "ada/server",
        "token": "s3cret",
        "allowed_users": ["grace"],
        "hosts": ["here"],
        "budget_minutes": 30,
        **changes,
    }


def send(url: str, secret: str, data: Any, event: str = "push", delivery: str = "d-1") -> Any:
    """As GitHub sends it: no session, no token."""
    body = json.dumps(data).encode()
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={signed}",
    }
    client = Client(enforce_csrf_checks=True)
    path = urlsplit(url).path
    answer = client.post(path, body, content_type="application/json", headers=headers)
    return answer.status_code


@pytest.fixture
def head(world: World) -> str:
    """The commit of pull request 5, on no branch."""
    git(world.repository, "checkout", "--quiet", world.shas[1])
    sha = commit_files(world.repository, {"file.txt": "of a fork\n"}, 9)
    git(world.repository, "update-ref", "refs/pull/5/head", "HEAD")
    git(world.repository, "checkout", "--quiet", "main")
    return sha


def ask(url: str, secret: str) -> None:
    """`/benchmark hello` in a comment on the pull request that the stand-in has."""
    data = {
        "action": "created",
        "repository": {"full_name": "ada/server"},
        "issue": {"number": 5, "pull_request": {"url": "of its API"}},
        "comment": {"id": 7, "body": "/benchmark hello", "user": {"login": "grace"}},
    }
    assert send(url, secret, data, "issue_comment", "d-9") == 200


def test_a_connection_accepts_only_webhooks_signed_with_its_secret(alice: Any) -> None:
    assert alice.get(FORGE).status_code == 404
    made = alice.put(FORGE, build_forge_body()).json()
    url, secret = made["webhook_url"], made["secret"]
    assert secret.startswith("pwforge_")
    assert (made["api_url"], made["has_token"]) == ("https://api.github.com", True)
    assert send(url, "pwforge_other", PUSH) == 403
    assert send(url, secret, PUSH) == 200
    assert send(url, secret, {"zen": "x"}, "ping", "d-2") == 200

    page = alice.get(f"{FORGE}/webhooks", limit=1).json()
    rest = alice.get(f"{FORGE}/webhooks", limit=1, cursor=page["next"]).json()
    deliveries = [(each["delivery"], each["event"]) for each in page["webhooks"] + rest["webhooks"]]
    assert (deliveries, rest["next"]) == ([("d-2", "ping"), ("d-1", "push")], None)
    assert rest["webhooks"][0]["outcome"].startswith("fetching main")

    renewed = alice.post(f"{FORGE}/secret").json()["secret"]
    assert send(url, secret, PUSH, delivery="d-3") == 403
    assert send(url, renewed, PUSH, delivery="d-3") == 200
    assert alice.delete(FORGE).status_code == 204
    assert send(url, renewed, PUSH, delivery="d-4") == 404
    assert alice.delete(FORGE).status_code == 404


def test_changing_a_connection_keeps_the_token_and_shows_no_secret(alice: Any, bob: Any) -> None:
    made = alice.put(FORGE, build_forge_body()).json()
    sealed = bytes(Connection.objects.get().sealed_token or b"")
    change = {name: value for name, value in build_forge_body().items() if name != "token"}
    changed = alice.put(FORGE, {**change, "allowed_users": ["ada", "grace"]}).json()
    assert changed == {**made, "allowed_users": ["ada", "grace"], "secret": None}
    assert bytes(Connection.objects.get().sealed_token or b"") == sealed
    # Else the token would be sent to wherever the address leads now.
    elsewhere = alice.put(FORGE, {**change, "api_url": "https://140.82.121.4"})
    assert (elsewhere.status_code, elsewhere.json()["field"]) == (422, "token")
    shown = bob.get(FORGE)
    assert shown.json() == {name: value for name, value in changed.items() if name != "secret"}
    assert "s3cret" not in shown.content.decode()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"repository": "server"}, "repository"),
        ({"repository": "ada/server\n"}, "repository"),
        ({"api_url": "http://169.254.169.254/"}, "api_url"),
        ({"kind": "bitbucket"}, "kind"),
        ({"kind": "gitea"}, "api_url"),
        ({"allowed_users": ["@ada"]}, "allowed_users"),
        ({"hosts": ["h" * 101]}, "hosts[0]"),
        ({"token": "a\nb"}, "token"),
        ({"budget_minutes": 0}, "budget_minutes"),
    ],
)
def test_an_invalid_connection_is_refused_with_the_field(
    alice: Any, changes: dict[str, Any], field: str
) -> None:
    answer = alice.put(FORGE, build_forge_body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not Connection.objects.exists()


def test_a_fork_is_measured_after_its_commit_is_approved(
    world: World, alice: Any, head: str
) -> None:
    with serve_stand_in("github", head_sha=head, fork=True) as forge:
        made = alice.put(FORGE, build_forge_body(api_url=forge.url)).json()
        ask(made["webhook_url"], made["secret"])
        follow_pulls()
        [waiting] = alice.get(f"{FORGE}/requests", state="waiting").json()["requests"]
        assert (waiting["commit"], waiting["from_fork"]) == (head, True)
        assert (waiting["number"], waiting["requested_by"], waiting["run"]) == (5, "grace", None)
        path = f"benchmark-requests/{waiting['id']}"
        assert alice.post(f"{path}/approve", {"commit": world.shas[2]}).status_code == 409
        assert not Run.objects.exists()

        approved = alice.post(f"{path}/approve", {"commit": head}).json()
        assert (approved["state"], approved["approved_by"]) == ("approved", "alice")
        follow_pulls()
        run_fetches()
        follow_pulls(FETCH_LOOK_EVERY)

    started = alice.get(path).json()
    run = Run.objects.get()
    assert (started["state"], UUID(started["run"])) == ("started", run.pk)
    assert run.variants.get(position=1).commit.sha == head
    assert alice.post(f"{path}/decline").status_code == 409
    assert AuditEntry.objects.filter(action="benchmark_request.approved").count() == 1
    assert alice.get(f"{FORGE}/requests", state="waiting").json()["requests"] == []


def test_viewers_and_strangers_cannot_use_connections(
    alice: Any, bob: Any, mallory: Any, head: str
) -> None:
    with serve_stand_in("github", head_sha=head, fork=True) as forge:
        made = alice.put(FORGE, build_forge_body(api_url=forge.url)).json()
        ask(made["webhook_url"], made["secret"])
        follow_pulls()
    request = f"benchmark-requests/{BenchmarkRequest.objects.get().pk}"
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.put(FORGE, build_forge_body(repository="eve/server")).status_code == status
        assert client.delete(FORGE).status_code == status
        assert client.post(f"{FORGE}/secret").status_code == status
        assert client.post(f"{request}/approve", {"commit": head}).status_code == status
        assert client.post(f"{request}/decline").status_code == status
    for path in (FORGE, f"{FORGE}/webhooks", f"{FORGE}/requests", request):
        assert bob.get(path).status_code == 200
        assert mallory.get(path).status_code == 404
    assert BenchmarkRequest.objects.get().state == "waiting"
    assert alice.post(f"{request}/decline").json()["state"] == "declined"
    assert Connection.objects.get().repository == "ada/server"
