"""A history of another tool in a real browser: from the file to its chart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import ChangePoint, Point
from tests.browser.screenshots import wait_until_drawn
from tests.support.factories import commit_files
from tests.support.fetches import fetch_now
from tests.support.histories import build_data_js, detect_all, run_imports
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget_cached()
    yield
    forget_cached()


def test_a_history_is_imported_until_its_chart_shows(
    page: Page, world: World, tmp_path: Path
) -> None:
    more = [commit_files(world.repository, {"file.txt": f"{n}\n"}, n) for n in range(3, 33)]
    fetch_now(world.project)
    shas = [*world.shas, *more]
    file = tmp_path / "data.js"
    file.write_bytes(build_data_js([*shas, "e" * 40], shift_at=20))

    page.goto("/imports/")
    page.get_by_role("link", name="Import a history").click()
    page.get_by_label("File").set_input_files(str(file))
    page.get_by_label("Project").select_option("server")
    page.get_by_text("Names and defaults").click()
    page.get_by_label("Host").fill("Old CI")
    page.get_by_role("button", name="Show a preview").click()

    expect(page.get_by_role("status")).to_have_text("Reading the file…")
    run_imports()
    # The page reloads itself.
    expect(page.get_by_text("33 of 34 are in the repository of server")).to_be_visible()
    expect(page.get_by_text("old-ci")).to_be_visible()
    page.get_by_label("Leave out their results").check()
    page.get_by_role("button", name="Import 34 values").click()

    run_imports()
    expect(page.get_by_role("status")).to_contain_text("33 results are new.")
    detect_all()
    assert Point.objects.filter(series__benchmark__slug="pipeline").count() == 33
    assert ChangePoint.objects.get().commit.sha == shas[20]

    page.get_by_role("link", name="Show the charts of pipeline").click()
    wait_until_drawn(page)
    chart = page.get_by_role("slider").first
    chart.focus()
    chart.press("Home")
    for _ in range(20):
        chart.press("ArrowRight")
    expect(page.locator("#pointed-commit")).to_contain_text(shas[20][:8])
    expect(page.locator(".legend .description")).to_contain_text("regressed +20")


def test_a_history_is_discarded_on_a_phone(page: Page, world: World, tmp_path: Path) -> None:
    file = tmp_path / "data.js"
    file.write_bytes(build_data_js(world.shas))
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/imports/new")
    page.get_by_label("File").set_input_files(str(file))
    page.get_by_role("button", name="Show a preview").click()
    expect(page.get_by_role("status")).to_have_text("Reading the file…")
    run_imports()
    expect(page.get_by_role("button", name="Import 3 values")).to_be_visible()
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wider <= 0
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_text("data.js was discarded.")).to_be_visible()
