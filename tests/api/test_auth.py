"""Who may ask: only the holder of a token that is not revoked."""

import pytest
from django.test import Client

from orchestrator.accounts.models import ApiToken, Membership, User
from orchestrator.accounts.services import revoke_token

ENDPOINTS = ("runs", "hosts", "benchmarks", "comparisons", "history")


@pytest.mark.parametrize("path", ENDPOINTS)
def test_it_asks_for_a_token(db, path):
    answer = Client().get(f"/api/v1/{path}")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="pitwall"'
    assert answer["Content-Type"] == "application/problem+json"
    assert "Authorization: Bearer" in answer.json()["detail"]


def test_it_refuses_a_start_without_a_token(lab):
    answer = Client().post("/api/v1/runs", lab.wanted(), content_type="application/json")
    assert answer.status_code == 401


@pytest.mark.parametrize("value", ["Bearer pw_unknown", "Bearer ", "Basic YTpi", "pw_unknown"])
def test_it_refuses_what_is_no_token(db, value):
    answer = Client().get("/api/v1/hosts", headers={"Authorization": value})
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]


def test_it_refuses_a_revoked_token(lab, alice):
    assert alice.get("hosts").status_code == 200
    revoke_token(member=lab.personas.alice, token_id=ApiToken.objects.get().pk)
    answer = alice.get("hosts")
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


def test_it_refuses_the_token_of_somebody_who_left_the_team(lab, alice):
    Membership.objects.filter(user=lab.personas.alice.user).delete()
    answer = alice.get("hosts")
    assert answer.status_code == 401
    assert "left the team" in answer.json()["detail"]


def test_it_refuses_the_token_of_a_disabled_user(lab, alice):
    User.objects.filter(username="alice").update(is_active=False)
    assert alice.get("hosts").status_code == 401


def test_it_remembers_that_a_token_was_used(lab, alice):
    assert ApiToken.objects.get().last_used_at is None
    alice.get("hosts")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_login_of_the_ui_is_no_token(lab):
    browser = Client()
    browser.force_login(lab.personas.alice.user)
    assert browser.get("/api/v1/runs").status_code == 401
