"""A maintainer adds, replaces and deletes a secret in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.project_secrets import open_secrets
from tests.browser import page_checks
from tests.support.world import World

pytestmark = pytest.mark.browser

KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\n-----END KEY-----\n"


def test_a_secret_is_added_replaced_and_deleted(page: Page, world: World) -> None:
    project = Project.objects.get(slug="server")
    page.goto("/projects/server/")
    page.get_by_role("link", name="Secrets", exact=True).click()
    page.get_by_label("Name").fill("STRIPE_KEY")
    page.get_by_label("Value").fill(KEY)
    page.get_by_role("button", name="Add secret").click()
    row = page.get_by_role("row", name="STRIPE_KEY")
    expect(row).to_contain_text("never")
    assert open_secrets(project, ["STRIPE_KEY"]).values == {"STRIPE_KEY": KEY}
    page.get_by_role("link", name="Replace the value of STRIPE_KEY").click()
    page.get_by_label("Value").fill("another value")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The value of STRIPE_KEY was replaced.")).to_be_visible()
    assert open_secrets(project, ["STRIPE_KEY"]).versions == {"STRIPE_KEY": 2}
    page.get_by_role("link", name="Delete STRIPE_KEY").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("row", name="STRIPE_KEY")).to_be_visible()
    page.get_by_role("link", name="Delete STRIPE_KEY").click()
    dialog.get_by_role("button", name="Delete secret").click()
    expect(page.get_by_text("No secret yet")).to_be_visible()
    assert page_checks.violations(page) == []


def test_the_page_is_accessible_and_fits_a_phone(page: Page, world: World) -> None:
    page.goto("/projects/server/secrets/")
    page.get_by_label("Name").fill("A_NAME_OF_SIXTY_FOUR_CHARACTERS_" * 2)
    page.get_by_label("Value").fill("a long enough value")
    page.get_by_role("button", name="Add secret").click()
    page.set_viewport_size({"width": 360, "height": 780})
    name = "A_NAME_OF_SIXTY_FOUR_CHARACTERS_" * 2
    for path in ("/projects/server/secrets/", f"/projects/server/secrets/{name}/"):
        page.goto(path)
        assert page_checks.violations(page) == []
        assert page_checks.too_wide(page) == []
