"""Signing in at an OpenID Connect provider, a real one on loopback."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import ApiToken, AuditEntry, User
from orchestrator.accounts.services import create_token
from tests.support.factories import PASSWORD, Personas
from tests.support.html_pages import values
from tests.support.oidc_provider import Provider, start_provider

ADA = {"sub": "7", "email": "Ada@Example.org", "email_verified": True, "preferred_username": "ada"}
LOGIN = reverse("login")


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with start_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider, settings: Any) -> Provider:
    settings.OIDC_SERVER_URL = running.issuer
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = running.client_id, running.client_secret
    settings.OIDC_NAME, settings.BASE_URL = "Example", "http://testserver"
    running.person, running.wrong, running.forges = dict(ADA), {}, False
    return running


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


def come_back(client: Client, **query: str) -> Any:
    """Presses the button, goes to the provider as a browser does, and comes back."""
    target = reverse("openid_connect_login")
    page = client.post(f"{target}?process={query.get('process', 'login')}", query)
    (refresh,) = values(page, "meta[http-equiv=refresh]", "content")
    try:
        urllib.request.build_opener(_Stays).open(refresh.removeprefix("0; url="))
    except HTTPError as answer:
        with answer:
            back = answer.headers["Location"]
    return client.get(back.removeprefix("http://testserver"))


def signed_in(client: Client) -> str | None:
    user = client.session.get("_auth_user_id")
    return User.objects.get(pk=user).username if user else None


def give_email(personas: Personas, name: str = "bob") -> User:
    user = getattr(personas, name).user
    User.objects.filter(pk=user.pk).update(email="ada@example.org")
    return user


def test_the_provider_is_offered_only_if_configured(db: None, client: Client) -> None:
    assert "Sign in with" not in client.get(LOGIN).content.decode()
    assert client.post(reverse("openid_connect_login")).status_code == 404


def test_an_account_is_linked_by_its_verified_email_address(
    provider: Provider, personas: Personas, client: Client
) -> None:
    assert "Sign in with Example" in client.get(LOGIN).content.decode()
    bob = give_email(personas)
    answer = come_back(client, next=reverse("runs"))
    assert answer.headers["Location"] == reverse("runs")
    assert signed_in(client) == "bob"
    assert client.get(reverse("runs")).status_code == 200
    # An address that nobody has verified here: who may have set a password beforehand is kept out.
    assert not User.objects.get(pk=bob.pk).has_usable_password()
    assert AuditEntry.objects.filter(action="sign-in.linked", actor=bob).count() == 1
    # From now on it is the person who counts, not the address.
    provider.person["email"] = "lovelace@example.org"
    again = Client()
    come_back(again)
    assert signed_in(again) == "bob"


@pytest.mark.parametrize("claim", [{"email_verified": False}, {"email_verified": "no"}])
def test_an_unverified_email_address_links_nothing(
    claim: dict[str, Any], provider: Provider, personas: Personas, client: Client, settings: Any
) -> None:
    give_email(personas)
    provider.person |= claim
    assert "No account yet" in come_back(client).content.decode()
    settings.OIDC_NEW_ACCOUNTS = True
    come_back(client)
    assert signed_in(client) == "ada"
    assert User.objects.get(username="ada").email == ""


def test_an_email_address_of_two_users_links_neither(
    provider: Provider, personas: Personas, client: Client
) -> None:
    give_email(personas, "bob")
    give_email(personas, "mallory")
    answer = come_back(client)
    assert answer.status_code == 409
    assert "log in with your password and link this sign-in" in answer.content.decode()
    assert signed_in(client) is None
    # One of them has proven it: the other one takes nothing away from them.
    EmailAddress.objects.create(user=personas.bob.user, email="ada@example.org", verified=True)
    come_back(client)
    assert signed_in(client) == "bob"


def test_earlier_access_to_a_linked_account_ends(
    provider: Provider, personas: Personas, client: Client
) -> None:
    """Mallory invited ada@example.org, accepted it herself, and left every way in that there is."""
    bob = give_email(personas)
    before = Client()
    before.force_login(bob)
    SocialAccount.objects.create(user=bob, provider="oidc", uid="mallory", extra_data={})
    TOTP.activate(bob, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(bob)
    token = create_token(member=personas.mallory, name="hers")
    ApiToken.objects.update(user=bob)

    page = client.get(come_back(client, next=reverse("account")).headers["Location"])
    assert signed_in(client) == "bob"
    assert "1 API tokens, 2 second factors and 1 other sign-ins were removed" in (
        page.content.decode()
    )
    assert list(SocialAccount.objects.values_list("uid", flat=True)) == ["7"]
    assert not Authenticator.objects.exists()
    assert ApiToken.objects.get(pk=token.token.pk).revoked_at is not None
    assert before.get(reverse("runs")).status_code == 302
    assert AuditEntry.objects.filter(action="sign-in.reset", actor=bob).exists()
    # The address is proven now: another link by it takes nothing away.
    TOTP.activate(bob, "JBSWY3DPEHPK3PXP")
    provider.person["sub"] = "9"
    answer = come_back(Client())
    assert answer.headers["Location"].startswith(reverse("mfa_authenticate"))
    assert Authenticator.objects.count() == 1


def test_linking_by_email_address_can_be_disabled(
    provider: Provider, personas: Personas, client: Client, settings: Any
) -> None:
    give_email(personas)
    settings.OIDC_LINK_BY_EMAIL, settings.OIDC_NEW_ACCOUNTS = False, True
    assert "No account yet" in come_back(client).content.decode()
    assert not SocialAccount.objects.exists()


def test_a_new_account_has_no_team_and_no_password(
    provider: Provider, personas: Personas, client: Client, settings: Any
) -> None:
    settings.OIDC_NEW_ACCOUNTS = True
    provider.person["preferred_username"] = "alice"
    come_back(client)
    made = User.objects.get(email="ada@example.org")
    assert made.username != "alice"
    assert (made.memberships.count(), made.has_usable_password()) == (0, False)
    assert client.get(reverse("overview")).status_code == 403
    assert "Set a password" in client.get(reverse("account")).content.decode()


@pytest.mark.parametrize(
    "lie",
    [
        {"aud": "another"},
        {"iss": "http://127.0.0.1:9"},
        {"exp": 1_000_000_000},
        {"sub": "8"},
        {"forges": True},
    ],
    ids=str,
)
def test_an_invalid_id_token_is_refused(
    lie: dict[str, Any], provider: Provider, personas: Personas, client: Client
) -> None:
    give_email(personas)
    provider.forges = lie.get("forges", False)
    provider.wrong = {} if provider.forges else lie
    answer = come_back(client)
    assert (answer.status_code, signed_in(client)) == (401, None)
    assert "Start again" in answer.content.decode()


def test_a_code_from_another_browser_is_refused(
    provider: Provider, personas: Personas, client: Client
) -> None:
    give_email(personas)
    callback = reverse("openid_connect_callback")
    answer = client.get(f"{callback}?code=stolen&state=guessed")
    assert (answer.status_code, signed_in(client)) == (401, None)


def test_an_unavailable_provider_is_reported(
    provider: Provider, client: Client, settings: Any, db: None
) -> None:
    settings.OIDC_SERVER_URL = "http://127.0.0.1:9"
    answer = client.post(reverse("openid_connect_login"))
    assert answer.status_code == 502
    assert "Example returned an invalid response" in answer.content.decode()


def test_a_user_links_and_unlinks_an_account(provider: Provider, personas: Personas) -> None:
    alice, bob = Client(), Client()
    for browser, member in ((alice, personas.alice), (bob, personas.bob)):
        User.objects.filter(pk=member.user.pk).update(password=make_password(PASSWORD))
        browser.login(username=member.user.username, password=PASSWORD)
    confirm = come_back(alice, process="connect").headers["Location"]
    assert confirm.startswith(reverse("account_reauthenticate"))
    assert alice.post(confirm, {"password": PASSWORD}).headers["Location"] == reverse("account")
    page = alice.get(reverse("account")).content.decode()
    assert "The sign-in was linked" in page
    link = SocialAccount.objects.get()
    assert link.user.username == "alice"
    # The tokens of the provider are not kept, neither in the tables nor in a session.
    kept = json.dumps(link.extra_data) + str([each.get_decoded() for each in Session.objects.all()])
    assert not [token for token in provider.tokens if token in kept]
    # bob is no owner of it, and it is linked already.
    remove = reverse("account-unlink", args=[link.pk])
    bob.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert bob.post(remove).status_code == 404
    come_back(bob, process="connect")
    assert "linked to another account" in bob.get(reverse("account")).content.decode()
    assert alice.post(remove).headers["Location"] == reverse("account")
    assert not SocialAccount.objects.exists()
