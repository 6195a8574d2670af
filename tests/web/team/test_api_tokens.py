"""API tokens."""

from pathlib import Path
from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.selectors import load_token_member
from tests.support.factories import Personas, add_member, make_project
from tests.support.html_pages import elements, get_text, shown_secret
from tests.web.conftest import signed_in

CI = {"name": "CI", "scopes": ["read", "run"]}


def test_a_new_token_is_shown_once(personas: Personas, alice: Client) -> None:
    made = alice.post(reverse("settings"), CI)
    secret = shown_secret(made)

    assert load_token_member(secret).user == personas.alice.user
    assert "no-store" in made.headers["Cache-Control"]
    later = alice.get(reverse("settings")).content.decode()
    assert secret not in later
    assert "CI" in later


def test_a_token_is_revoked(personas: Personas, alice: Client) -> None:
    alice.post(reverse("settings"), CI)
    token = ApiToken.objects.get()
    alice.post(reverse("token-revoke", args=[token.pk]))
    token.refresh_from_db()

    assert token.revoked_at is not None
    assert alice.post(reverse("token-revoke", args=[token.pk])).status_code == 404


def test_a_token_needs_a_name(personas: Personas, alice: Client) -> None:
    answer = alice.post(reverse("settings"), {**CI, "name": " "})

    assert answer.status_code == 422
    assert not ApiToken.objects.exists()


def test_viewers_and_strangers_cannot_create_tokens(
    personas: Personas, alice: Client, bob: Client, mallory: Client
) -> None:
    alice.post(reverse("settings"), CI)
    token = ApiToken.objects.get()

    assert bob.post(reverse("settings"), CI).status_code == 403
    assert bob.post(reverse("token-revoke", args=[token.pk])).status_code == 403
    assert mallory.post(reverse("token-revoke", args=[token.pk])).status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


def test_scopes_and_expiry_of_a_token_are_shown(
    personas: Personas, alice: Client, settings: Any, tmp_path: Path
) -> None:
    settings.ALLOW_LOCAL_REPOSITORIES = True
    project, _ = make_project(personas.alice, tmp_path / "repository")
    alice.post(reverse("settings"), {**CI, "project": str(project.pk), "days": "30"})
    token = ApiToken.objects.get()

    assert token.scopes == ["read", "run"]
    assert token.project == project
    assert token.expires_at is not None
    page = alice.get(reverse("settings")).content.decode()
    assert f"{token.expires_at:%Y-%m-%d}" in page
    assert "Server" in map(get_text, elements(page, "td"))
    assert alice.post(reverse("settings"), {"name": "CI"}).status_code == 422


def test_only_maintainers_revoke_tokens_of_others(personas: Personas, alice: Client) -> None:
    alice.post(reverse("settings"), CI)
    place = reverse("token-revoke", args=[ApiToken.objects.get().pk])
    assert (
        signed_in(add_member(personas.alice, "carol", Role.MEMBER)).post(place).status_code == 403
    )
    mia = signed_in(add_member(personas.alice, "mia", Role.MAINTAINER))
    assert mia.post(place).status_code == 302
