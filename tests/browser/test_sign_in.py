"""Signing in as people do: a password and a code of the phone, or at a provider elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import Browser, Page, expect

from orchestrator.accounts.models import AuditEntry, User
from tests.browser import page_checks
from tests.browser.conftest import log_in
from tests.browser.console import complaints
from tests.browser.screenshots import picture_screen
from tests.browser.test_screens import PHONE, PICTURES
from tests.support.factories import PASSWORD, make_personas
from tests.support.oidc_provider import start_provider

pytestmark = pytest.mark.browser


@pytest.fixture
def page(
    browser: Browser, transactional_db: None, live_server: Any, settings: Any
) -> Iterator[Page]:
    """A visitor's page on a phone; the test fails if the browser reported an error."""
    settings.BASE_URL = live_server.url
    # The clock is the machine's own: a code that holds for weeks does not end within a test.
    settings.MFA_TOTP_PERIOD = 4_000_000_000
    personas = make_personas()
    User.objects.filter(pk=personas.bob.user.pk).update(email="bob@example.org")
    with browser.new_context(
        base_url=live_server.url,
        viewport=PHONE,
        reduced_motion="reduce",  # type: ignore[arg-type]
    ) as context:
        page = context.new_page()
        problems = complaints(page)
        yield page
    assert problems == []


def judge(page: Page, name: str) -> None:
    assert [*page_checks.too_wide(page), *page_checks.violations(page)] == []
    if PICTURES:
        picture_screen(page, name, Path(PICTURES))
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]


def test_a_second_factor_is_enabled_and_required(page: Page) -> None:
    log_in(page)
    page.get_by_role("link", name="alice").click()
    page.get_by_role("link", name="Turn it on").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    picture = page.get_by_role("img", name="QR code")
    expect(picture).to_be_visible()
    box = picture.bounding_box()
    assert box
    assert min(box["width"], box["height"]) > 200
    judge(page, "second-factor-on")
    page.get_by_text("Cannot scan the picture?").click()
    code = format_hotp_value(hotp_value(page.locator("pre.secret").inner_text(), 0))
    page.get_by_role("textbox", name="Authenticator code").fill(code)
    page.get_by_role("button", name="Turn it on").click()
    expect(page.locator(".codes li")).to_have_count(10)
    assert AuditEntry.objects.get(action="second-factor.on").actor.username == "alice"
    judge(page, "recovery-codes")
    page.get_by_role("link", name="Back to your account").click()
    expect(page.get_by_text("10 recovery codes are left")).to_be_visible()
    judge(page, "account-with-second-factor")
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    judge(page, "login-code")
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_user_signs_in_with_the_identity_provider(page: Page, settings: Any) -> None:
    with start_provider() as provider:
        settings.OIDC_SERVER_URL, settings.OIDC_NAME = provider.issuer, "Example"
        settings.OIDC_CLIENT_ID = provider.client_id
        settings.OIDC_CLIENT_SECRET = provider.client_secret
        provider.person = {"sub": "7", "email": "bob@example.org", "email_verified": True}
        page.goto("/runs/")
        judge(page, "login-elsewhere")
        page.get_by_role("button", name="Sign in with Example").click()
        expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        page.get_by_role("link", name="bob").click()
        expect(page.get_by_text("Linked since")).to_be_visible()
        judge(page, "account-linked")
        page.get_by_role("button", name="Log out").click()
        provider.person = {"sub": "8"}
        page.get_by_role("button", name="Sign in with Example").click()
        expect(page.get_by_role("heading", name="No account yet")).to_be_visible()
        judge(page, "no-account-yet")
