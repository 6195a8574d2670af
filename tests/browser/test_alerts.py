"""Alerts in a real browser: from the navigation to one of them, and what is done about it."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from tests.support.commit_lines import build_line
from tests.support.demo_team import raise_alert
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_an_alert_is_found_read_and_acknowledged(page: Page, world: World) -> None:
    project, host = Project.objects.get(), Host.objects.get()
    raise_alert(build_line(world.personas.alice, project, host, slug="long", cases=2))
    page.goto("/")
    page.get_by_role("link", name="Alerts 1 open").click()
    page.get_by_role("link", name="Hello: Requests per second").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("−8.0 %")
    expect(page.get_by_role("region", name="Bisection")).to_contain_text("good")
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} pixels too wide at {width}"
    page.get_by_role("textbox", name="Note").fill("on it")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".title .badge")).to_contain_text("Acknowledged")
    page.get_by_role("textbox", name="Note").fill("reverted")
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page.get_by_role("region", name="Activity")).to_contain_text(
        "alice: confirmed: reverted"
    )
    page.get_by_role("link", name="← Alerts").click()

    page.get_by_role("link", name="Hello: Requests per second").focus()
    page.keyboard.press("s")
    expect(page.get_by_label("Silence until")).to_be_focused()
    page.get_by_label("Silence until").fill(f"{utc_now() + timedelta(days=3):%Y-%m-%d}")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("link", name="Silenced (1)").click()
    page.get_by_role("link", name="Hello: Requests per second").focus()
    page.keyboard.press("r")
    expect(page.get_by_label("Note")).to_be_focused()
    page.keyboard.type("reverted")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 alert changed")
    expect(page.get_by_text("No alerts match these filters")).to_be_visible()
