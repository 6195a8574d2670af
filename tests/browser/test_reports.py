"""Reports in a real browser: dimensions are chosen and the table follows, scripts or not."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.reports.saved_reports import save_report
from tests.browser.conftest import give_session
from tests.browser.screenshots import wait_until_drawn
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = """\
version: 1
title: Ranked
benchmark: server/hello
commit: all
tables:
  - title: Rates
    rows: [connections, commit]
    columns:
      - {title: Rate, metric: requests.rate}
      - {title: p99, metric: latency.p99}
      - {title: Unknown, metric: latency.first_byte.p50}
    sort: Rate
"""


def test_the_table_follows_the_selection(page: Page, world: World) -> None:
    page.goto("/reports/new")
    expect(page.locator("table.pivot tbody tr")).to_have_count(1)
    page.get_by_label("Commit").fill("all")
    expect(page.locator("table.pivot tbody tr")).to_have_count(3)
    page.get_by_label("Column dimension 1").select_option("commit")
    expect(page.locator("table.pivot tbody tr")).to_have_count(1)
    expect(page.locator("table.pivot thead th")).to_have_count(4)
    page.get_by_label("Metrics").fill("latency.p12")
    expect(page.locator("table.pivot thead")).to_contain_text("latency.p12")
    expect(page.get_by_label("Metrics")).to_be_focused()
    wait_until_drawn(page)
    page.get_by_label("Metrics").fill("nonsense")
    expect(page.locator("#explorer")).to_contain_text("there is no metric nonsense")
    page.get_by_label("Metrics").fill("requests.rate")
    expect(page.locator("table.pivot thead")).to_contain_text("Requests per second")

    page.get_by_text("Save this report", exact=True).click()
    page.get_by_label("Name").fill("by-commit")
    page.get_by_role("button", name="Save report").click()
    expect(page).to_have_url(re.compile("/reports/by-commit/$"))
    expect(page.locator("table.pivot thead th")).to_have_count(4)


def test_a_link_restores_the_selection(page: Page, world: World) -> None:
    page.goto("/reports/new")
    page.get_by_label("Commit").fill("all")
    expect(page.locator("table.pivot tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Link to this report").click()
    expect(page.locator("table.pivot tbody tr")).to_have_count(3)
    expect(page.get_by_label("Commit")).to_have_value("all")


def test_the_selection_works_without_scripts(
    browser: Browser, world: World, live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto("/reports/new")
    page.get_by_label("Row dimension 1").select_option("commit")
    page.get_by_label("Commit", exact=True).fill("all")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("table.pivot tbody tr")).to_have_count(3)
    context.close()


def test_report_pages_fit_narrow_screens_and_explain_empty_cells(page: Page, world: World) -> None:
    save_report(member=world.personas.alice, source=TEXT, slug="ranked")
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        for path in ("/reports/", "/reports/new", "/reports/ranked/", "/reports/ranked/edit"):
            page.goto(path)
            wait_until_drawn(page)
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{path} is {wider} pixels too wide at {width}"
    page.goto("/reports/ranked/")
    first = page.locator("table.pivot tbody tr").first
    # All rows are of one run, whose noise between runs is not known.
    expect(first.locator(".rank")).to_have_text("1–3")
    first.get_by_text("unknown").click()
    expect(first.get_by_text("the load tool does not report it")).to_be_visible()
