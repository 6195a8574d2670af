"""From an empty instance to numbers in a real browser: real servers, a real load tool."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.benchmarks.models import Benchmark
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run, Trial
from tests.browser import page_checks
from tests.browser.conftest import log_in
from tests.browser.console import complaints
from tests.browser.test_first_steps import create_setup_link, make_account
from tests.support.engine import Engine, running_engine, server
from tests.support.factories import make_personas, make_repository, make_shared_host
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.engine]


@pytest.fixture
def engine(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path / "engine", PITWALL_ALLOW_LOCAL_HOST="1") as running:
        settings.DATA_DIR = running.data_dir
        settings.ALLOW_LOCAL_HOST = settings.ALLOW_LOCAL_REPOSITORIES = True
        yield running


@pytest.fixture
def page(browser: Browser, engine: Engine, live_server: Any, settings: Any) -> Iterator[Page]:
    settings.BASE_URL = live_server.url
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    page = context.new_page()
    problems = complaints(page)
    yield page
    context.close()
    assert problems == []


def test_an_empty_instance_gets_to_a_report(page: Page) -> None:
    """The waiting time is printed, not judged: it depends on the machine."""
    began = time.monotonic()
    page.goto(create_setup_link())
    page.get_by_label("Team").fill("Web Servers")
    make_account(page, "olivia", "Create the team")
    assert [*page_checks.too_wide(page), *page_checks.violations(page)] == []
    pressed = time.monotonic()
    page.get_by_role("button", name="Measure this machine").click()
    # The tests next to this one make the host busy, which only a shared host may be. Its job, which
    # reads this at its start, is queued after the fetch.
    wait_until(lambda: Host.objects.update(is_shared=True), "the host was not added")
    # Nobody presses anything: the page of the fetch leads to the run, which shows its values.
    page.wait_for_url("**/runs/*-*/", timeout=60_000)
    result = page.get_by_role("region", name="Result")
    expect(result.locator("tbody td.number").first).to_contain_text("1/s", timeout=120_000)
    print(f"\nThe first number came {time.monotonic() - pressed:.0f} s after the button.")
    expect(page.locator(".badge[data-state=finished]").first).to_be_visible(timeout=180_000)
    expect(result).to_contain_text("of 7")
    assert page_checks.violations(page) == []

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Compare").click()
    page.get_by_role("link", name="Reports", exact=True).click()
    page.get_by_role("link", name="New report").first.click()
    table = page.locator("table.pivot")
    expect(table.locator("tbody tr")).to_have_count(1)
    page.get_by_text("Save this report", exact=True).click()
    page.get_by_label("Name").fill("first")
    page.get_by_role("button", name="Save report").click()
    page.wait_for_url("**/reports/first/")
    expect(table.locator("tbody tr")).to_have_count(1)
    print(f"The report was saved {time.monotonic() - began:.0f} s after the setup link was opened.")

    assert set(Trial.objects.values_list("state", flat=True)) == {"measured"}
    host = Host.objects.get()
    assert (host.name, host.profile.is_pending) == ("this-machine", False)
    page.goto("/hosts/")
    expect(page.locator("main")).to_contain_text(host.profile.name)


def test_a_suite_of_the_catalogue_runs_after_three_clicks(page: Page) -> None:
    alice = make_personas().alice
    make_shared_host(alice)
    log_in(page)
    page.goto("/benchmarks/")
    page.get_by_role("link", name="Catalogue", exact=True).click()
    suite = page.get_by_role("article").filter(
        has=page.get_by_role("link", name="Hello", exact=True)
    )
    suite.get_by_role("button", name="Run this suite").click()
    expect(page.locator("#run-brief")).to_contain_text("1 case × 7 trials", timeout=60_000)
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/", timeout=60_000)
    run = Run.objects.get()
    assert run.definition.benchmark.project.repository_url == "catalogue:hello"
    result = page.get_by_role("region", name="Result")
    expect(result.locator("tbody td.number").first).to_contain_text("1/s", timeout=120_000)
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator(".badge[data-state=cancelled]").first).to_be_visible(timeout=60_000)


def test_a_repository_is_inspected_tried_and_saved(page: Page, tmp_path: Path) -> None:
    alice = make_personas().alice
    make_shared_host(alice)
    make_repository(tmp_path / "shop", [server()])
    log_in(page)
    page.goto("/projects/new")
    page.get_by_label("Short name").fill("shop")
    page.get_by_label("Repository").fill(str(tmp_path / "shop"))
    page.get_by_role("button", name="Add the project").click()
    page.get_by_role("link", name="Propose one from the repository").click()

    proposal = page.get_by_role("region", name="Proposal for shop")
    expect(proposal).to_contain_text("subject.start from server.py", timeout=60_000)
    expect(page.locator("#review")).to_contain_text("Valid")
    assert [*page_checks.too_wide(page), *page_checks.violations(page)] == []
    text = page.get_by_label("Definition (YAML)")
    text.fill(text.input_value().replace("duration_s: 5", "duration_s: 2"))
    page.get_by_role("button", name="Run one trial").click()
    page.wait_for_url("**/runs/*-*/", timeout=60_000)
    expect(page.locator(".badge[data-state=finished]").first).to_be_visible(timeout=120_000)
    expect(page.get_by_role("region", name="Result")).to_contain_text("1/s")
    assert Benchmark.objects.get().is_draft

    page.get_by_role("link", name="Back to the definition").click()
    expect(page.get_by_label("Definition (YAML)")).to_have_value(
        Benchmark.objects.get().definitions.get().source
    )
    assert page_checks.violations(page) == []
    page.get_by_role("button", name="Save the benchmark").click()
    expect(page.get_by_role("button", name="Save as a new version")).to_be_visible()
    assert not Benchmark.objects.get().is_draft
    assert Run.objects.get().jobs.get().trials.get().state == "measured"
