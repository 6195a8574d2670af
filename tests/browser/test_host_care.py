"""Looking after a host in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from tests.browser.conftest import World

pytestmark = pytest.mark.browser


@pytest.fixture
def host(world: World) -> Host:
    host = Host.objects.get(name="here")
    facts = {"cpu_model": "A CPU with a rather long name " * 3, "kernel": "6.1", "governor": None}
    reasons = {"reasons": {"governor": "nothing here governs the clocks"}}
    record_snapshot(host=host, facts={**facts, **reasons, "fingerprint": "a"})
    record_snapshot(host=host, facts={**facts, **reasons, "kernel": "6.2", "fingerprint": "b"})
    return host


def test_it_is_drained_and_released(page: Page, host: Host) -> None:
    page.goto(f"/hosts/{host.pk}/")
    page.get_by_label("Reason").fill("new fan")
    page.get_by_role("button", name="Put in maintenance").click()
    expect(page.locator(".title .badge[data-state=maintenance]")).to_be_visible()
    expect(page.locator(".notice").first).to_have_text("alice: new fan")

    page.get_by_role("button", name="Release it").click()
    expect(page.locator(".title .badge[data-state=ready]")).to_be_visible()


def test_its_hours_are_changed_in_place(page: Page, host: Host) -> None:
    page.goto(f"/hosts/{host.pk}/")
    expect(page.get_by_label("Open hours")).to_be_hidden()
    page.get_by_text("Change how it is used").click()
    page.get_by_label("Open hours").fill("sat-sun")
    page.get_by_role("button", name="Save").first.click()
    expect(page.locator("dl.facts code").first).to_have_text("sat-sun")


def test_its_page_fits_on_a_wide_and_on_a_narrow_screen(page: Page, host: Host) -> None:
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"/hosts/{host.pk}/")
        for summary in page.locator("summary").all():
            summary.click()
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} pixels too wide at {width}"
