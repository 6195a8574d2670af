"""A calibration of a host in a real browser, and its result in the form of the next run."""

import re

import pytest
from playwright.sync_api import Page, expect

from orchestrator.calibration.calibrations import judge_calibrations
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from tests.browser.screenshots import wait_until_drawn
from tests.support.factories import finish_run
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_a_host_is_calibrated_and_shows_the_smallest_change(page: Page, world: World) -> None:
    address = f"/hosts/{Host.objects.get().pk}/"
    for wobble in (0.02, 0.03):
        page.goto(address)
        page.get_by_text("New calibration").click()
        page.get_by_role("button", name="Calibrate").click()
        page.wait_for_url("**/runs/*/")
        finish_run(Run.objects.get(trigger="calibration", state="queued"), [1000], wobble=wobble)
        judge_calibrations()
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(address)
        wait_until_drawn(page)
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} pixels too wide at {width}"
    section = page.get_by_role("region", name="Noise and detectable changes")
    expect(section.locator("canvas")).to_be_visible()
    expect(section.locator("th", has_text="7 blocks detect")).to_be_visible()
    page.get_by_label("Series", exact=True).select_option(label="Hello: Latency p50, connections 4")
    section.get_by_role("button", name="Show").click()
    wait_until_drawn(page)
    expect(section.get_by_role("img")).to_have_attribute("aria-label", re.compile("Latency p50"))


def test_a_plan_shows_the_calibration_of_its_host(page: Page, world: World) -> None:
    page.goto(f"/runs/new?benchmark=server/hello&contender={world.shas[1]}&hosts=here")
    expect(page.locator("#plan")).to_contain_text("(by earlier runs there)")
    page.get_by_role("link", name="Calibrate the host").click()
    expect(page.get_by_role("heading", name="Noise and detectable changes")).to_be_in_viewport()
