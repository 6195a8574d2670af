"""A comparison in a real browser: rows, one case in full, with scripts and without."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.benchmarks.models import Benchmark
from tests.browser.conftest import give_session
from tests.browser.screenshots import wait_until_drawn
from tests.support.factories import DEFINITION, finish_run, make_definition, make_run
from tests.support.world import World

pytestmark = pytest.mark.browser

SIX = DEFINITION.replace("connections: [4]", "connections: [1, 2, 4, 8, 16, 32]").replace(
    "duration_s: 0.6", "duration_s: 0.7"
)


def _path(shas: list[str], **more: str) -> str:
    words = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[1], **more}
    return "/compare/?" + "&".join(f"{name}={value}" for name, value in words.items())


@pytest.fixture
def many(world: World) -> World:
    """Six cases of two commits under a second version of the definition."""
    project = Benchmark.objects.get().project
    make_definition(world.personas.alice, project, source=SIX)
    finish_run(make_run(world.personas.alice, world.shas[:2], rounds=6), [1000, 930], wobble=0.01)
    more = make_run(world.personas.alice, world.shas[1:], rounds=5)
    finish_run(more, [1000, 1010], wobble=0.03)
    return world


def test_a_row_expands_and_collapses_with_its_charts(page: Page, many: World) -> None:
    page.goto(_path(many.shas))
    rows = page.locator(".compared tbody th a")
    expect(rows).to_have_count(6)
    expect(page.locator(".case-detail")).to_have_count(0)
    rows.nth(1).click()
    detail = page.locator(".case-detail")
    expect(detail).to_be_visible()
    expect(rows.nth(1)).to_have_attribute("aria-expanded", "true")
    expect(detail.locator("canvas")).to_have_count(2)
    wait_until_drawn(page)
    rows.nth(1).press("Enter")
    expect(detail).to_be_hidden()
    expect(rows.nth(1)).to_have_attribute("aria-expanded", "false")
    rows.nth(1).click()
    expect(page.locator(".case-detail")).to_have_count(1)
    expect(detail).to_be_visible()


def test_the_heat_map_links_to_the_case_and_markdown_is_copied(
    browser: Browser, page: Page, many: World, live_server: Any
) -> None:
    path = _path(many.shas, rows="connections", columns="metric")
    page.goto(path)
    page.get_by_text("Markdown for a pull request").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()

    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    still = context.new_page()
    give_session(still, live_server.url)
    still.goto(path)
    expect(still.get_by_role("button", name="Copy")).to_be_hidden()
    chart = still.get_by_role("form", name="Values of the map")
    chart.get_by_label("Rows").select_option("metric")
    chart.get_by_label("Columns").select_option("connections")
    chart.get_by_role("button", name="Show").click()
    tiles = still.locator(".heat-map td a")
    expect(tiles).to_have_count(3 * 6)
    tiles.first.focus()
    still.keyboard.press("Enter")
    expect(still.get_by_role("heading", name="Evidence")).to_be_visible()
    context.close()


def test_the_comparison_fits_narrow_screens_and_both_colour_schemes(
    page: Page, many: World
) -> None:
    folder = os.environ.get("PITWALL_TEST_PICTURES")
    unlike = {"version": "1", "contender_version": "2"}
    paths = {
        "rows": _path(many.shas),
        "unlike": _path(many.shas, **unlike),
        "open": _path(many.shas[1:]),
    }
    for name, path in paths.items():
        for width in (1280, 400):
            for look in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=look, reduced_motion="reduce")  # type: ignore[arg-type]
                page.goto(path)
                if not page.locator(".case-detail").count():
                    page.locator(".compared tbody tr", has_text="→").locator("th a").first.click()
                expect(page.locator(".case-detail canvas").first).to_be_visible()
                wait_until_drawn(page)
                wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert wider <= 0, f"{name} is {wider} pixels too wide at {width}"
                if folder:
                    page.wait_for_timeout(300)
                    picture = Path(folder) / f"{name}-{width}-{look}.png"
                    page.screenshot(path=picture, full_page=True)


def test_the_form_offers_measured_commits_and_opens_the_comparison(page: Page, many: World) -> None:
    page.goto(_path(many.shas))
    page.get_by_role("link", name="More options").click()
    baseline = page.get_by_role("group", name="Baseline")
    expect(baseline.get_by_label("Commit")).to_have_value(many.shas[0])
    baseline.get_by_label("Definition").select_option("1")
    page.get_by_role("group", name="Contender").get_by_label("Definition").select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".headline")).to_be_visible()
    expect(page.locator(".narrowed")).to_contain_text("Definition: 1 → 2")


def test_each_case_has_a_page_without_scripts(
    browser: Browser, many: World, live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto(_path(many.shas))
    page.locator(".compared tbody tr", has_text="→").locator("th a").first.click()
    expect(page.get_by_role("heading", name="Change of latency at each percentile")).to_be_visible()
    expect(page.get_by_role("table", name="Change of latency at each percentile")).to_be_visible()
    page.get_by_role("link", name="Back to the comparison").click()
    expect(page.locator(".compared")).to_be_visible()
    context.close()
