"""The navigation in a real browser: one line, in the same place on every page."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import Host
from tests.support.commit_lines import build_line
from tests.support.demo_team import raise_alert
from tests.support.world import World

pytestmark = pytest.mark.browser

PAGES = (
    "/",
    "/runs/",
    "/compare/",
    "/history/",
    "/alerts/",
    "/benchmarks/",
    "/hosts/",
    "/settings/",
)


def _places(page: Page) -> list[Any]:
    """Return the left edge, the top and the width of each entry."""
    return page.eval_on_selector_all(
        "header nav a",
        """(links) => links.map((link) => {
            const box = link.getBoundingClientRect();
            return [box.left, box.top, box.width];
        })""",
    )


def _header_height(page: Page) -> float:
    return float(page.eval_on_selector("header.frame", "(node) => node.offsetHeight"))


@pytest.mark.parametrize("width", [1024, 1280, 1920])
def test_the_entries_are_on_one_line_and_do_not_move(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/")
    first, height = _places(page), _header_height(page)
    assert len({top for _, top, _ in first}) == 1
    assert height < 70
    for address in PAGES[1:]:
        page.goto(address)
        assert (_places(page), _header_height(page)) == (first, height), address


def test_the_number_of_alerts_moves_no_entry(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 1024, "height": 800})
    page.goto("/runs/")
    before = _places(page)
    project, host = Project.objects.get(), Host.objects.get()
    raise_alert(build_line(world.personas.alice, project, host, slug="long", cases=2))
    page.reload()
    expect(page.get_by_role("link", name="Alerts 1 open")).to_be_visible()
    assert _places(page) == before


def test_lists_of_a_section_are_reached_by_its_tabs(page: Page) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").click()
    page.get_by_role("link", name="Schedules", exact=True).click()
    expect(page.get_by_role("heading", name="Schedules", level=1)).to_be_visible()
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Quotas").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Settings")


def test_the_menu_of_a_phone_has_all_entries(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/runs/")
    page.get_by_role("button", name="Menu").click()
    menu = page.get_by_role("navigation", name="Main")
    for name in ("Overview", "Alerts", "Hosts", "Settings", "Help"):
        expect(menu.get_by_role("link", name=name)).to_be_in_viewport()
    menu.get_by_role("link", name="Benchmarks").click()
    expect(page.get_by_role("heading", name="Benchmarks", level=1)).to_be_visible()
