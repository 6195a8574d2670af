"""Members, invitations and the teams of a user."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.memberships import leave_team
from orchestrator.accounts.models import ApiToken, AuditEntry, Invitation, Membership, Role, User
from orchestrator.accounts.services import create_token
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError
from tests.support.factories import PASSWORD, Personas, add_member
from tests.support.html_pages import element, get_text, shown_secret
from tests.web.conftest import signed_in

INVITE = {"role": "member", "email": "", "days": "7"}


def invited(browser: Client, **changes: str) -> str:
    """The address in the link of a new invitation."""
    page = browser.post(reverse("invitation-new"), {**INVITE, **changes})
    return urlsplit(shown_secret(page)).path


def test_an_invited_person_creates_an_account_and_is_a_member(
    personas: Personas, alice: Client
) -> None:
    link, dora = invited(alice), Client()
    account = {"username": "dora", "password": PASSWORD, "again": PASSWORD}
    assert "alice invites you to the team" in get_text(dora.get(link))
    assert dora.post(link, {**account, "again": "x"}).status_code == 422
    assert dora.post(link, {**account, "username": "alice"}).status_code == 422
    assert dora.post(link, account).headers["Location"] == reverse("overview")

    assert Membership.objects.get(user__username="dora").role == Role.MEMBER
    assert "dora" in dora.get(reverse("members")).content.decode()
    assert Client().post(link, {**account, "username": "eve"}).status_code == 410
    assert not User.objects.filter(username="eve").exists()
    assert link.rsplit("/", 1)[1] not in str(list(Invitation.objects.values()))


def test_a_user_of_another_team_joins_and_switches(
    personas: Personas, alice: Client, mallory: Client
) -> None:
    mallory.post(invited(alice, role="viewer"))
    assert get_text(element(_settings(mallory), "h1")).startswith("Settings Red")
    mallory.post(reverse("team-switch"), {"team": "blue"})
    assert get_text(element(_settings(mallory), "h1")).startswith("Settings Blue")
    assert mallory.post(reverse("team-switch"), {"team": "green"}).status_code == 403
    assert alice.post(reverse("team-switch"), {"team": "blue"}).status_code == 403
    Membership.objects.filter(user=personas.mallory.user, team=personas.alice.team).delete()
    mallory.post(reverse("team-switch"), {"team": "red"})
    assert "Blue</span>" in _settings(mallory)


@pytest.mark.parametrize("ending", ["withdrawn_at", "used_at", "expires_at"])
def test_an_invitation_expires(ending: str, alice: Client, mallory: Client) -> None:
    link = invited(alice)
    Invitation.objects.update(**{ending: utc_now()})
    assert mallory.get(link).status_code == 410
    assert mallory.post(link).status_code == 410
    assert Membership.objects.filter(user__username="mallory").count() == 1


def test_invitations_are_withdrawn_and_only_by_authorised_members(
    personas: Personas, alice: Client, bob: Client, mallory: Client
) -> None:
    link = invited(alice, email="dora@example.org")
    place = reverse("invitation-withdraw", args=[Invitation.objects.get().pk])
    assert "dora@example.org" in alice.get(reverse("members")).content.decode()
    assert "dora@example.org" not in bob.get(reverse("members")).content.decode()
    assert bob.post(place).status_code == 403
    assert mallory.post(place).status_code == 404
    alice.post(place)
    assert mallory.get(link).status_code == 410


def test_the_invitation_is_mailed_if_there_is_a_mail_server(
    alice: Client, settings: object
) -> None:
    link = invited(alice, email="dora@example.org")
    assert mail.outbox == []
    settings.EMAIL_HOST = "mail.example.org"  # type: ignore[attr-defined]
    page = alice.post(reverse("invitation-new"), {**INVITE, "email": "eve@example.org"})
    assert "The invitation was sent to eve@example.org" in get_text(page)
    assert mail.outbox[0].to == ["eve@example.org"]
    assert "/invitations/pwi_" in mail.outbox[0].body
    assert link not in mail.outbox[0].body


def test_mails_of_a_team_are_limited_per_hour(
    personas: Personas, alice: Client, mallory: Client, settings: Any
) -> None:
    settings.EMAIL_HOST, settings.EMAILS_AN_HOUR = "mail.example.org", 3
    place = reverse("invitation-new")
    for name in "abc":
        assert alice.post(place, {**INVITE, "email": f"{name}@example.org"}).status_code == 200
    refused = alice.post(place, {**INVITE, "email": "d@example.org"})
    assert refused.status_code == 422
    assert "may send 3 e-mails per hour" in refused.content.decode()
    assert (len(mail.outbox), Invitation.objects.count()) == (3, 3)
    assert alice.post(place, INVITE).status_code == 200, "a link alone is no mail"
    mallory.post(place, {**INVITE, "email": "d@example.org"})
    assert len(mail.outbox) == 4, "another team has its own limit"


@pytest.mark.parametrize("password", ["elevenchars", "dora-example", "123456789012"])
def test_a_common_password_is_refused(alice: Client, password: str) -> None:
    link = invited(alice)
    account = {"username": "dora-example", "password": password, "again": password}
    answer = Client().post(link, account)
    assert answer.status_code == 422, answer.content.decode()
    assert not User.objects.filter(username="dora-example").exists()


def test_maintainers_manage_viewers_and_members_and_owners_manage_all(
    personas: Personas, alice: Client
) -> None:
    maintainer = signed_in(add_member(personas.alice, "mia", Role.MAINTAINER))
    assert _change(maintainer, "bob", "member") == 302
    assert _change(maintainer, "bob", "maintainer") == 403
    assert _change(maintainer, "alice", "viewer") == 403
    assert maintainer.post(reverse("member-remove", args=["alice"])).status_code == 403
    owned = {**INVITE, "role": "owner"}
    assert maintainer.post(reverse("invitation-new"), owned).status_code == 422
    assert _change(alice, "mia", "viewer") == 302
    roles = Membership.objects.filter(team__slug="red").values_list("user__username", "role")
    assert dict(roles) == {"alice": "owner", "bob": "member", "mia": "viewer"}


def test_a_team_must_keep_an_owner(personas: Personas, alice: Client) -> None:
    assert _change(alice, "alice", "member") == 409
    answer = alice.post(reverse("team-leave"))
    assert answer.status_code == 409
    assert "appoint another owner first" in answer.content.decode()
    with pytest.raises(ConflictError):
        leave_team(member=personas.alice)
    _change(alice, "bob", "owner")
    assert alice.post(reverse("team-leave")).status_code == 302
    assert alice.get(reverse("overview")).status_code == 403


def test_a_removed_member_loses_access_and_tokens(personas: Personas, alice: Client) -> None:
    carol = add_member(personas.alice, "carol", Role.MEMBER)
    secret = create_token(member=carol, name="CI").secret
    headers = {"Authorization": f"Bearer {secret}"}
    assert Client().get("/api/v1/hosts", headers=headers).status_code == 200
    browser = signed_in(carol)
    alice.post(reverse("member-remove", args=["carol"]))

    assert ApiToken.objects.get().revoked_at is not None
    assert Client().get("/api/v1/hosts", headers=headers).status_code == 401
    assert browser.get(reverse("overview")).status_code == 403
    assert AuditEntry.objects.filter(action="member.removed", subject="carol").exists()


def test_members_are_listed(personas: Personas, bob: Client, mallory: Client) -> None:
    page = bob.get(reverse("members")).content.decode()
    assert "alice" in page
    assert "Viewer" in page
    assert "mallory" not in page
    assert "alice" not in mallory.get(reverse("members")).content.decode()


def _change(browser: Client, username: str, role: str) -> int:
    return browser.post(reverse("member-role", args=[username]), {"role": role}).status_code


def _settings(browser: Client) -> str:
    return browser.get(reverse("settings")).content.decode()
