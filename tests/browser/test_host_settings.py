"""Looking after a host in a real browser."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.results.models import Calibration
from tests.support.factories import make_local_host, make_run, noise
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def host(world: World) -> Host:
    host = Host.objects.get(name="here")
    facts = {"cpu_model": "A CPU with a rather long name " * 3, "kernel": "6.1", "governor": None}
    reasons = {"reasons": {"governor": "nothing here governs the clocks"}}
    record_snapshot(host=host, facts={**facts, **reasons, "fingerprint": "a"})
    record_snapshot(host=host, facts={**facts, **reasons, "kernel": "6.2", "fingerprint": "b"})
    return host


def test_a_host_is_drained_and_released(page: Page, host: Host) -> None:
    page.goto(f"/hosts/{host.pk}/")
    page.get_by_label("Reason").fill("new fan")
    page.get_by_role("button", name="Put in maintenance").click()
    expect(page.locator(".title .badge[data-state=maintenance]")).to_be_visible()
    expect(page.locator(".notice").first).to_have_text("alice: new fan")

    page.get_by_role("button", name="Activate").click()
    expect(page.locator(".title .badge[data-state=ready]")).to_be_visible()


def test_a_host_is_reserved_with_the_keyboard(page: Page, host: Host) -> None:
    page.goto(f"/hosts/{host.pk}/")
    page.get_by_text("Reserve this host").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reserve for").select_option("86400")
    page.get_by_label("Note").fill("debugging")
    page.keyboard.press("Enter")
    notice = page.locator(".notice", has_text="reserved by alice until")
    expect(notice).to_contain_text("UTC: debugging")
    notice.get_by_role("button", name="End reservation").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Reserve this host")).to_be_visible()
    expect(notice).to_have_count(0)


def test_opening_hours_are_changed_in_place(page: Page, host: Host) -> None:
    page.goto(f"/hosts/{host.pk}/")
    expect(page.get_by_label("Open hours")).to_be_hidden()
    page.get_by_text("Host settings").click()
    page.get_by_label("Open hours").fill("sat-sun")
    page.get_by_role("button", name="Save").first.click()
    expect(page.locator("dl.facts code").first).to_have_text("sat-sun")


def test_the_host_page_fits_wide_and_narrow_screens(page: Page, host: Host) -> None:
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"/hosts/{host.pk}/")
        for summary in page.locator("summary").all():
            summary.click()
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} pixels too wide at {width}"


def test_thirty_hosts_fit_a_phone(page: Page, world: World) -> None:
    alice = world.personas.alice
    for number in range(30):
        make_local_host(alice, f"rack-{number:02}")
    reason = "golden run: drifted: latency p50 9.2 % slower than in its 12 runs before"
    Host.objects.filter(name__in=["rack-07", "rack-21"]).update(state="quarantined", message=reason)
    Host.objects.filter(name="rack-09").update(state="maintenance", message="alice: new fan")
    Host.objects.filter(name="rack-11").update(tags=["quiet", "rack-2"], open_hours="sat-sun")
    temperatures = {"coretemp Package id 0": 61.4}
    for host in Host.objects.order_by("name")[:12]:
        record_snapshot(host=host, facts={"temperatures": temperatures})
        for place, sigma in enumerate((0.02, 0.012, 0.016, 0.011)):
            run = make_run(alice, world.shas[:1])
            readings = {"case": {"requests.rate": noise(sigma)}}
            Calibration.objects.create(
                run=run, host=host, benchmark=run.definition.benchmark, epoch=0, readings=readings,
                commit=run.variants.get().commit, at=utc_now() - timedelta(days=9 - place),
            )  # fmt: skip
    for width, scheme in ((1200, "light"), (390, "dark"), (360, "light")):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/hosts/")
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} pixels too wide at {width}"
        if folder := os.environ.get("PITWALL_LOOK"):
            page.screenshot(path=Path(folder) / f"fleet-{width}.png")
    row = page.get_by_role("row").filter(has_text=reason).first
    row.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("heading", name="rack-07")).to_be_visible()
    expect(page.locator(".title .badge[data-state=ready]")).to_be_visible()
