"""The documentation in a real browser: from a word on a page to its explanation."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.world import World

pytestmark = pytest.mark.browser


def test_a_term_leads_to_its_entry(page: Page, world: World) -> None:
    page.goto("/history/?benchmark=server/hello")
    page.get_by_role("link", name="Trials", exact=True).click()
    expect(page.get_by_role("heading", name="Glossary", level=1)).to_be_visible()
    entry = page.locator("#trial")
    expect(entry).to_have_text("trial")
    expect(entry).to_be_in_viewport()


def test_documents_are_reached_from_help(page: Page) -> None:
    page.goto("/runs/")
    page.get_by_role("link", name="Help", exact=True).click()
    page.get_by_role("link", name="How a run ends").click()
    expect(page.get_by_role("heading", name="How a run ends", level=1)).to_be_visible()
    page.get_by_role("link", name="← Documentation").click()
    page.locator("main").get_by_role("link", name="API documentation").click()
    page.get_by_role("link", name="Start a run").click()
    expect(page.get_by_role("heading", name="Start a run", exact=True)).to_be_in_viewport()
    page.locator("#start_run summary").click()
    expect(page.locator("#start_run [data-example=python]")).to_contain_text("requests.post")
