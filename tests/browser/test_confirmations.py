"""Destructive buttons ask first, with and without JavaScript; copy buttons copy."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.accounts.models import ApiToken
from orchestrator.runs.models import Schedule
from tests.browser import page_checks
from tests.browser.conftest import give_session
from tests.support.factories import make_nightly_schedule
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def schedule(world: World) -> Schedule:
    return make_nightly_schedule(world.alice)


def test_a_schedule_is_deleted_in_a_dialog_that_can_be_cancelled(
    page: Page, schedule: Schedule
) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto("/schedules/")
    button = page.get_by_role("link", name="Delete nightly")
    # On a narrow screen each schedule is a card with all its values and buttons.
    expect(page.locator(".cell-label", has_text="When (UTC)")).to_be_visible()
    expect(button).to_be_in_viewport()
    button.click()
    dialog = page.get_by_role("dialog", name="Delete the schedule “nightly”?")
    expect(dialog.get_by_role("link", name="Cancel")).to_be_focused()
    assert page_checks.violations(page) == []
    assert page_checks.too_wide(page) == []
    dialog.get_by_role("link", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    button.press("Enter")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert Schedule.objects.exists()

    button.click()
    dialog.get_by_role("button", name="Delete schedule").click()
    expect(page.get_by_text("The schedule “nightly” was deleted.")).to_be_visible()
    assert not Schedule.objects.exists()


def test_a_schedule_is_deleted_without_javascript(
    browser: Browser, live_server: Any, schedule: Schedule
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto("/schedules/")
    page.get_by_role("link", name="Delete nightly").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Delete nightly").click()
    assert Schedule.objects.exists()
    page.get_by_role("button", name="Delete schedule").click()
    expect(page.get_by_text("The schedule “nightly” was deleted.")).to_be_visible()
    assert not Schedule.objects.exists()
    context.close()


def test_a_new_token_is_copied_and_revoked(page: Page, world: World) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/settings/")
    page.get_by_label("Name").fill("CI")
    page.get_by_role("button", name="Create a token").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#secret").inner_text()
    page.get_by_role("link", name="Revoke CI").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke token").click()
    expect(page.get_by_text("The token “CI” was revoked.")).to_be_visible()
    assert ApiToken.objects.get().revoked_at is not None
