"""From an empty instance to a second member, in a real browser that sends every form."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from playwright.sync_api import Browser, Page, expect

from orchestrator.accounts.invitations import create_invitation
from orchestrator.accounts.models import Membership, User
from tests.browser import page_checks
from tests.browser.console import complaints
from tests.support.factories import PASSWORD, make_personas

pytestmark = pytest.mark.browser


@pytest.fixture
def people(
    browser: Browser, transactional_db: None, live_server: Any, settings: Any
) -> Iterator[list[Page]]:
    """Two people, each with a browser of their own; no error may appear on their consoles."""
    settings.BASE_URL = live_server.url
    contexts = [browser.new_context(base_url=live_server.url) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    problems = [complaints(page) for page in pages]
    yield pages
    for context in contexts:
        context.close()
    assert problems == [[], []]


def test_an_empty_instance_gets_an_owner_who_invites_a_second_user(people: list[Page]) -> None:
    owner, guest = people
    owner.goto(create_setup_link())
    assert [*page_checks.too_wide(owner), *page_checks.violations(owner)] == []
    owner.get_by_label("Team").fill("Web Servers")
    make_account(owner, "olivia", "Create the team")
    expect(owner.get_by_role("heading", name="Overview")).to_be_visible()

    owner.get_by_role("button", name="Log out").click()
    owner.get_by_label("Username").fill("olivia")
    owner.get_by_label("Password").fill(PASSWORD)
    owner.get_by_role("button", name="Log in").click()
    expect(owner.get_by_text("Web Servers").first).to_be_visible()

    owner.goto("/settings/members/")
    owner.get_by_role("button", name="Invite", exact=True).click()
    guest.goto(owner.locator(".secret").inner_text())
    assert [*page_checks.too_wide(guest), *page_checks.violations(guest)] == []
    make_account(guest, "gustav", "Create the account and join")
    expect(guest.get_by_text("Welcome to Web Servers.")).to_be_visible()
    guest.goto("/settings/members/")
    expect(guest.get_by_role("rowheader", name="olivia")).to_be_visible()
    roles = Membership.objects.values_list("user__username", "role", "team__slug")
    assert set(roles) == {
        ("olivia", "owner", "web-servers"),
        ("gustav", "member", "web-servers"),
    }
    assert create_setup_link() == ""


def test_a_user_joins_by_an_invitation_that_leaves_no_referer(
    people: list[Page],
) -> None:
    personas = make_personas()
    new = create_invitation(member=personas.alice, role="viewer")
    page, _ = people
    referers: list[str] = []
    page.on("request", lambda request: referers.append(request.headers.get("referer", "")))
    page.goto(f"/invitations/{new.secret}")
    page.get_by_role("link", name="Log in").click()
    page.get_by_label("Username").fill("mallory")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Join as mallory").click()
    expect(page.get_by_text("Welcome to Red.")).to_be_visible()
    assert User.objects.get(username="mallory").memberships.count() == 2
    assert len(referers) > 3
    assert not [each for each in referers if "pwi_" in each]


def create_setup_link() -> str:
    """What `make run` prints for an instance without users; empty once there is one."""
    out = StringIO()
    call_command("setup_link", stdout=out)
    match = re.search(r"http://\S+/setup/\S+", out.getvalue())
    return match[0] if match else ""


def make_account(page: Page, name: str, button: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name=button).click()
