"""A trial's page in a real browser: its charts are drawn, nothing is cut off."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.runs.models import Trial
from tests.browser.screenshots import wait_until_drawn
from tests.support.demo_team import measured_with_doubts
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def trial(world: World) -> Trial:
    """A search of six loads, with doubts and seconds."""
    return measured_with_doubts(world.run)


def test_loads_of_a_trial_are_drawn_and_link_to_each_load(page: Page, trial: Trial) -> None:
    page.goto(f"/trials/{trial.pk}/")
    wait_until_drawn(page)
    expect(page.locator("canvas[data-chart=loads]")).to_be_visible()
    expect(page.locator("#loads-title")).to_contain_text("6")

    page.get_by_role("link", name="2", exact=True).click()
    wait_until_drawn(page)
    expect(page.locator("#distribution h2, h2#distribution")).to_contain_text("of load 2")
    expect(page.locator("canvas[data-chart=seconds]")).to_be_visible()


def test_the_latency_curve_joins_its_points_by_straight_lines(page: Page, world: World) -> None:
    trial = Trial.objects.filter(job__run=world.run).order_by("position")[1]
    page.goto(f"/trials/{trial.pk}/")
    wait_until_drawn(page)
    canvas = page.locator("canvas[data-chart=latency]")
    expect(canvas).to_be_visible()
    tension, first, last = canvas.evaluate(
        """canvas => {
          const line = Chart.getChart(canvas).getDatasetMeta(0), { options } = line.dataset;
          return [options.tension + (options.cubicInterpolationMode === "monotone" ? 1 : 0),
                  line.data[0].x, line.data.at(-1).x];
        }"""
    )
    assert tension == 0
    assert first < last
    expect(page.locator("section:has(#distribution) .chart-and-table tbody")).to_contain_text("p99")


def test_a_percentile_is_computed_on_request(page: Page, trial: Trial) -> None:
    page.goto(f"/trials/{trial.pk}/")
    page.get_by_role("textbox", name="Percentiles").fill("37.5")
    page.get_by_label("Load", exact=True).select_option("load 3")
    page.get_by_role("button", name="Show").click()

    expect(page.locator("section:has(#distribution) > .scroll tbody")).to_contain_text("p37.5")
    expect(page.locator("section:has(#distribution) > .scroll tbody")).to_contain_text("8.0")


def test_no_content_of_the_trial_page_is_cut_off(page: Page, trial: Trial) -> None:
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        for query in ("", "?load=1"):
            page.goto(f"/trials/{trial.pk}/{query}")
            wait_until_drawn(page)
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{wider} pixels too wide at {width}"
