"""Charts in a real browser: wide, with dates and honest axes, and drawn without scripts."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.benchmarks.models import Commit
from tests.browser.conftest import give_session
from tests.browser.screenshots import wait_until_drawn
from tests.support.world import World

pytestmark = pytest.mark.browser

HISTORY = "/history/?benchmark=server/hello"
CHART = "Chart.getChart(document.querySelector('canvas[data-chart={}]'))"


def _open(page: Page, address: str = HISTORY) -> None:
    page.goto(address)
    wait_until_drawn(page)


def _read(page: Page, what: str, kind: str = "history") -> Any:
    return page.evaluate(f"{CHART.format(kind)}{what}")


@pytest.mark.parametrize(("width", "least"), [(1280, 600), (1920, 1000)])
def test_a_chart_is_as_wide_as_the_screen_allows(page: Page, width: int, least: int) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    _open(page)
    assert page.locator(".history-chart").bounding_box()["width"] > least  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_commits_on_the_axis_have_their_dates(page: Page, world: World) -> None:
    for place, commit in enumerate(Commit.objects.order_by("position")):
        commit.committed_at += timedelta(days=400 * place)
        commit.save()
    _open(page)
    labels = _read(page, ".scales.x.ticks.map((tick) => tick.label)")
    assert [each for each in labels if each] == [
        [commit.sha[:7], f"{commit.committed_at:%Y-%m-%d}"]
        for commit in Commit.objects.order_by("position")
    ]


def test_a_cut_axis_says_so(page: Page) -> None:
    _open(page)
    assert _read(page, ".scales.y.min") > 0
    assert _read(page, ".scales.y.options.title.text") == "Requests per second, 1/s (axis cut)"
    _open(page, f"{HISTORY}&scale=change")
    assert "cut" not in _read(page, ".scales.y.options.title.text")


def test_no_chart_is_smoothed(page: Page, world: World) -> None:
    _open(page)
    bent = ".data.datasets.some((each) => each.tension || each.cubicInterpolationMode)"
    assert _read(page, bent) is False
    _open(
        page, f"/compare/?benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"
    )
    for kind in ("latency", "quantiles"):
        if page.locator(f"canvas[data-chart={kind}]").count():
            assert _read(page, bent, kind) is False


def test_the_server_draws_the_history_where_no_script_runs(
    browser: Browser, page: Page, world: World, live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    plain = context.new_page()
    give_session(plain, live_server.url)
    plain.goto(HISTORY)
    picture = plain.get_by_role("img", name="Requests per second of 3 measured commits")
    expect(picture).to_be_visible()
    assert picture.bounding_box()["height"] > 100  # type: ignore[index]
    expect(plain.locator(".drawn")).to_contain_text("axis cut")
    expect(plain.locator(".drawn")).to_contain_text(world.shas[0][:7])
    expect(plain.locator(".history-chart")).to_be_hidden()
    context.close()
    _open(page)
    expect(page.locator(".drawn")).to_have_count(0)
