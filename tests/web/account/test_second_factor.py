"""Passwords in Argon2, a second factor with recovery codes, and what guards both."""

from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry, User
from orchestrator.config import settings as real
from orchestrator.core.counting import drain
from orchestrator.core.sealing import Keyring
from tests.support.factories import PASSWORD, Personas
from tests.support.html_pages import element, elements, get_text, shown_secret

LOGIN = reverse("login")
ON, OFF = reverse("mfa_activate_totp"), reverse("mfa_deactivate_totp")
CODES = reverse("mfa_view_recovery_codes")


@pytest.fixture(autouse=True)
def _long_period(settings: Any) -> None:
    """The clock is the machine's own: a code that holds for weeks does not end within a test."""
    settings.MFA_TOTP_PERIOD = 4_000_000_000


def log_in(client: Client, name: str = "alice", password: str = PASSWORD) -> Any:
    return client.post(LOGIN, {"username": name, "password": password, "next": reverse("runs")})


def compute_code(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, 0))


def confirm(client: Client, target: str, **answer: str) -> Any:
    """Goes to a guarded page, and says who it is when it is asked."""
    location = client.get(target).headers["Location"]
    return client.post(location, {"next": target, **answer})


def turn_on(client: Client) -> tuple[str, list[str]]:
    """The secret and the recovery codes of a second factor that was just turned on."""
    assert confirm(client, ON, password=PASSWORD).headers["Location"] == ON
    page = client.get(ON)
    secret = shown_secret(page)
    element(page, "svg.qr")
    assert "data:image" not in page.content.decode()
    assert "The code is wrong." in client.post(ON, {"code": "000"}).content.decode()
    assert client.post(ON, {"code": compute_code(secret)}).headers["Location"] == CODES
    codes = [get_text(each) for each in elements(client.get(CODES), "li > code")]
    assert all(len(code) == 8 for code in codes)
    return secret, codes


def test_a_secret_during_setup_is_sealed_in_the_session(personas: Personas, client: Client) -> None:
    log_in(client)
    confirm(client, ON, password=PASSWORD)
    shown = shown_secret(client.get(ON))
    stored = Session.objects.get().get_decoded()
    assert stored["mfa.totp.secret"].startswith("pw2:")
    assert shown not in str(stored)
    # Without its key the setup cannot be confirmed, and starts again.
    lost = {**stored, "mfa.totp.secret": Keyring({"2019": "x" * 40}).seal(shown, "x").decode()}
    Session.objects.update(session_data=DatabaseSessionStore().encode(lost))
    assert "The code is wrong." in client.post(ON, {"code": compute_code(shown)}).content.decode()
    assert not Authenticator.objects.exists()
    another = shown_secret(client.get(ON))
    assert client.post(ON, {"code": compute_code(another)}).headers["Location"] == CODES


def test_an_old_hash_becomes_argon2_at_the_next_log_in(
    personas: Personas, client: Client, settings: Any
) -> None:
    settings.PASSWORD_HASHERS = real.PASSWORD_HASHERS
    alice = personas.alice.user
    old = make_password(PASSWORD, hasher="pbkdf2_sha256")
    User.objects.filter(pk=alice.pk).update(password=old)
    assert log_in(client).headers["Location"] == reverse("runs")
    alice.refresh_from_db()
    assert alice.password.startswith("argon2$argon2id$")
    assert client.get(reverse("runs")).status_code == 200


def test_a_new_password_ends_other_sessions_and_is_audited(
    personas: Personas, client: Client
) -> None:
    elsewhere = Client()
    log_in(client), log_in(elsewhere)
    new = "quite another one 3"
    target = reverse("account_change_password")
    wrong = {"oldpassword": "no", "password1": "12345678", "password2": "12345678"}
    page = client.post(target, wrong).content.decode()
    assert "current password" in page
    assert "too common" in page
    client.post(target, {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert "Your password was changed" in client.get(reverse("account")).content.decode()
    assert elsewhere.get(reverse("runs")).status_code == 302
    assert AuditEntry.objects.get(action="password.changed").actor == personas.alice.user
    assert log_in(Client(), password=new).headers["Location"] == reverse("runs")


def test_the_second_factor_is_asked_for_after_the_password(
    personas: Personas, client: Client
) -> None:
    log_in(client)
    secret, codes = turn_on(client)
    assert len(codes) == 10
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert "pw2:" in stored
    assert secret not in stored
    browser = Client()
    assert log_in(browser).headers["Location"] == reverse("mfa_authenticate")
    assert browser.get(reverse("runs")).status_code == 302
    step = reverse("mfa_authenticate")
    assert "The code is wrong." in browser.post(step, {"code": "000000"}).content.decode()
    assert browser.post(step, {"code": compute_code(secret)}).headers["Location"] == reverse("runs")
    assert browser.get(reverse("runs")).status_code == 200
    # Neither a code of the app nor a recovery code is good for a second time.
    for code, again in ((compute_code(secret), False), (codes[0], True), (codes[0], False)):
        other = Client()
        log_in(other)
        other.post(step, {"code": code})
        assert ("_auth_user_id" in other.session) == again
    assert "9 recovery codes" in client.get(reverse("account")).content.decode()


def test_disabling_a_second_factor_needs_confirmation(personas: Personas, client: Client) -> None:
    log_in(client)
    _, codes = turn_on(client)
    browser = Client()
    log_in(browser)
    browser.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert browser.post(OFF).headers["Location"].startswith(reverse("account_reauthenticate"))
    assert "ncorrect password" in confirm(browser, OFF, password="guess").content.decode()
    assert Authenticator.objects.count() == 2
    # What was asked for before goes on when it is confirmed.
    assert confirm(browser, OFF, password=PASSWORD).headers["Location"] == reverse("account")
    assert not Authenticator.objects.exists()
    assert log_in(Client()).headers["Location"] == reverse("runs")
    assert AuditEntry.objects.get(action="second-factor.off").actor == personas.alice.user


def test_an_operator_can_reset_a_second_factor(personas: Personas, client: Client) -> None:
    log_in(client)
    turn_on(client)
    call_command("remove_second_factor", "alice", stdout=StringIO())
    assert log_in(Client()).headers["Location"] == reverse("runs")
    assert AuditEntry.objects.get(action="second-factor.removed").actor is None
    with pytest.raises(CommandError, match="no second factor"):
        call_command("remove_second_factor", "alice")


def test_password_attempts_are_limited_across_addresses(
    personas: Personas,
) -> None:
    for last in range(10):
        Client(REMOTE_ADDR=f"127.0.0.{last + 2}").post(
            LOGIN, {"username": "alice", "password": "guess"}
        )
    late = log_in(Client(REMOTE_ADDR="127.0.0.99"))
    assert "Wait five minutes" in late.content.decode()
    assert log_in(Client(), "bob").headers["Location"] == reverse("runs")


def guess(browser: Client, times: int = 1) -> str:
    for _ in range(times):
        page = browser.post(LOGIN, {"username": "alice", "password": "guess"})
    return page.content.decode()


def test_attempts_of_strangers_do_not_lock_out_a_known_device(personas: Personas) -> None:
    mine, of_bob, forged = Client(), Client(), Client()
    log_in(mine)
    mine.post(reverse("logout"))
    log_in(of_bob, "bob")
    of_bob.post(reverse("logout"))
    forged.cookies["known_device"] = of_bob.cookies["known_device"].value.replace("a", "b")
    cookie = mine.cookies["known_device"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    guess(Client(), 10)
    for stranger in (Client(), of_bob, forged):
        assert "Wait five minutes" in log_in(stranger).content.decode()
    assert log_in(mine).headers["Location"] == reverse("runs")
    # It has a limit of its own.
    mine.post(reverse("logout"))
    assert "Wait five minutes" not in guess(mine, 10)
    assert "Wait five minutes" in log_in(mine).content.decode()


def test_logins_and_failed_logins_are_logged_counted_and_audited(
    personas: Personas, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    drain()
    guess(Client(), 3)
    Client().post(LOGIN, {"username": "my-password-by-mistake", "password": "guess"})
    log_in(client)
    _, codes = turn_on(client)
    browser = Client()
    log_in(browser)
    browser.post(reverse("mfa_authenticate"), {"code": "000000"})
    browser.post(reverse("mfa_authenticate"), {"code": codes[0]})

    rows = AuditEntry.objects.filter(team__slug="red").order_by("pk")
    entries = [f"{each.actor_name}: {each.action}" for each in rows if each.subject == "alice"]
    assert [each for each in entries if "login" in each or "failed" in each] == [
        ": login.failed", "alice: login.succeeded", ": second-factor.failed",
        "alice: login.succeeded",
    ]  # fmt: skip
    counted = {dict(labels)["outcome"]: number for (name, labels), number in drain().items()
               if name == "pitwall_logins_total"}  # fmt: skip
    assert counted == {"wrong_password": 4, "success": 2, "wrong_code": 1}
    assert caplog.text.count("a login failed (wrong password): user alice from 127.0.0.1") == 3
    assert "a login failed (wrong password): an unknown username" in caplog.text
    assert "my-password-by-mistake" not in caplog.text
    assert "guess" not in caplog.text


@pytest.mark.parametrize(
    "name",
    ["account", "account_change_password", "mfa_activate_totp", "mfa_view_recovery_codes"],
)
def test_a_visitor_sees_no_account_pages(name: str, db: None, client: Client) -> None:
    assert client.get(reverse(name)).headers["Location"].startswith(LOGIN)


def test_other_pages_do_not_query_sign_in_tables(personas: Personas) -> None:
    browser = Client()
    log_in(browser)
    with CaptureQueriesContext(connection) as queries:
        browser.get(reverse("runs"))
    tables = ("mfa_", "account_", "socialaccount_", "accounts_shared_cache")
    sql = [each["sql"] for each in queries if any(f'"{name}' in each["sql"] for name in tables)]
    assert sql == []
