"""Who may ask: only the holder of a token that is not revoked."""

from dataclasses import replace

import pytest
from django.test import Client

from orchestrator.accounts import sign_in_log
from orchestrator.accounts.invitations import create_invitation
from orchestrator.accounts.models import ApiToken, AuditEntry, Membership, Scope, User
from orchestrator.accounts.services import create_token, revoke_token
from orchestrator.accounts.sign_in_log import _LineLimit
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import drain
from orchestrator.core.errors import PermissionRefusedError
from tests.api.conftest import ApiClient

ENDPOINTS = ("runs", "hosts", "benchmarks", "comparisons", "history")


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_request_without_a_token_is_refused(db, path):
    answer = Client().get(f"/api/v1/{path}")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="pitwall"'
    assert answer["Content-Type"] == "application/problem+json"
    assert "Authorization: Bearer" in answer.json()["detail"]


def test_starting_a_run_without_a_token_is_refused(world):
    answer = Client().post("/api/v1/runs", world.run_body(), content_type="application/json")
    assert answer.status_code == 401


@pytest.mark.parametrize("value", ["Bearer pw_unknown", "Bearer ", "Basic YTpi", "pw_unknown"])
def test_an_invalid_token_is_refused(db, value):
    answer = Client().get("/api/v1/hosts", headers={"Authorization": value})
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]


def test_refused_tokens_are_counted_and_logged_without_the_token(world, alice, monkeypatch, caplog):
    monkeypatch.setattr(sign_in_log, "token_lines", _LineLimit(most=3))
    drain()
    revoke_token(member=world.personas.alice, token_id=ApiToken.objects.get().pk)
    assert alice.get("hosts").status_code == 401
    for number in range(9):
        headers = {"Authorization": f"Bearer pw_guessed{number}"}
        assert Client().get("/api/v1/hosts", headers=headers).status_code == 401
    counted = {dict(labels).get("outcome"): number for (name, labels), number in drain().items()
               if name == "pitwall_logins_total"}  # fmt: skip
    assert counted == {"wrong_token": 10}
    lines = [each.getMessage() for each in caplog.records if "an API token" in each.getMessage()]
    assert len(lines) == 3, "of ten in a minute"
    assert "from 127.0.0.1: this API token is unknown or was revoked" in lines[0]
    assert "guessed" not in caplog.text
    assert alice.secret not in caplog.text


def test_a_token_invites_nobody(world, alice):
    owner = replace(world.personas.alice, token=ApiToken.objects.get())
    with pytest.raises(PermissionRefusedError, match="creates no accounts"):
        create_invitation(member=owner, role="viewer")
    assert alice.post("invitations", {"role": "viewer"}).status_code == 405
    assert alice.get("invitations").json()["invitations"] == []


def test_a_revoked_token_is_refused(world, alice):
    assert alice.get("hosts").status_code == 200
    revoke_token(member=world.personas.alice, token_id=ApiToken.objects.get().pk)
    answer = alice.get("hosts")
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


def test_the_token_of_a_former_member_is_refused(world, alice):
    Membership.objects.filter(user=world.personas.alice.user).delete()
    answer = alice.get("hosts")
    assert answer.status_code == 401
    assert "left the team" in answer.json()["detail"]


def test_the_token_of_a_disabled_user_is_refused(world, alice):
    User.objects.filter(username="alice").update(is_active=False)
    assert alice.get("hosts").status_code == 401


def test_the_last_use_of_a_token_is_recorded(world, alice):
    assert ApiToken.objects.get().last_used_at is None
    alice.get("hosts")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_session_cookie_is_not_a_token(world):
    browser = Client()
    browser.force_login(world.personas.alice.user)
    assert browser.get("/api/v1/runs").status_code == 401


def test_an_expired_token_is_refused_with_the_reason(world, alice):
    ApiToken.objects.update(expires_at=utc_now())
    answer = alice.get("hosts")
    assert answer.status_code == 401
    assert "expired on" in answer.json()["detail"]


def test_a_token_has_its_scopes_and_creates_no_token_with_more(world):
    member = world.personas.alice
    token = create_token(member=member, name="reader", scopes=[Scope.READ, Scope.MANAGE])
    reader = ApiClient(secret=token.secret)
    assert reader.get("runs").status_code == 200
    answer = reader.post("runs", world.run_body())
    assert answer.status_code == 403
    assert "lacks the scope run" in answer.json()["detail"]
    child = {"name": "child", "scopes": ["read", "run"]}
    assert reader.post("tokens", child).status_code == 403
    made = reader.post("tokens", {**child, "scopes": ["read"], "days": 3})
    assert made.status_code == 201
    assert ApiClient(secret=made.json()["secret"]).get("runs").status_code == 200
    listed = reader.get("tokens").json()["tokens"]
    assert [each["scopes"] for each in listed] == [["read"], ["read", "manage"]]
    assert "secret" not in listed[0]


def test_an_expiring_token_creates_no_token_that_lives_longer(world):
    made = create_token(member=world.personas.alice, name="parent", days=2)
    parent = ApiClient(secret=made.secret)
    for days in (None, 3, 1):
        child = parent.post("tokens", {"name": "child", "scopes": ["read"], "days": days})
        assert child.status_code == 201
    ends = {each.name: each.expires_at for each in ApiToken.objects.order_by("expires_at")}
    assert ends["parent"] == made.token.expires_at
    assert not ApiToken.objects.filter(expires_at__gt=made.token.expires_at).exists()
    assert ApiToken.objects.filter(expires_at__lt=made.token.expires_at).count() == 1


def test_revoking_a_token_revokes_the_tokens_that_it_created(world):
    alice = world.personas.alice
    made = create_token(member=alice, name="parent")
    child = ApiClient(
        secret=ApiClient(secret=made.secret)
        .post("tokens", {"name": "child", "scopes": ["read", "manage"]})
        .json()["secret"]
    )
    grandchild = ApiClient(
        secret=child.post("tokens", {"name": "grandchild", "scopes": ["read"]}).json()["secret"]
    )
    other = ApiClient(secret=create_token(member=alice, name="other").secret)
    revoke_token(member=alice, token_id=made.token.pk)
    assert [each.get("hosts").status_code for each in (child, grandchild, other)] == [401, 401, 200]
    revoked = AuditEntry.objects.filter(action="token.revoked").values_list("subject", flat=True)
    assert [each.partition(" ")[0] for each in revoked] == ["parent", "child", "grandchild"]


def test_a_project_token_starts_runs_of_its_project_only(world):
    member = world.personas.alice
    mine, other = (
        ApiClient(secret=create_token(member=member, name="ci", project=project.pk).secret)
        for project in (world.project, world.add_project())
    )
    assert mine.post("runs", world.run_body()).status_code == 201
    (started,) = mine.get("runs").json()["runs"]
    assert other.post("runs", world.run_body()).status_code == 404
    assert other.get("runs").json()["runs"] == []
    path = f"runs/{started['id']}"
    assert [each.get(path).status_code for each in (mine, other)] == [200, 404], "kept for one"
    answer = other.post("tokens", {"name": "all", "scopes": ["read"]})
    assert answer.status_code == 403
    assert "is for the project other only" in answer.json()["detail"]
