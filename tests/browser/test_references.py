"""Reference results in a real browser: long addresses and wide tables stay on the page."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.reports.reference_suites import import_published, list_reference_suites
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_reference_results_are_found_on_wide_and_narrow_screens(page: Page, world: World) -> None:
    for suite in list_reference_suites():
        import_published(member=world.personas.alice, suite=suite)
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/references/")
        expect(page.locator("tbody tr")).to_have_count(5)
        page.get_by_role("link", name="HTTP servers' overhead, the report").click()
        page.get_by_label("Search").fill("hello 10000")
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("24 of them match")
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0
