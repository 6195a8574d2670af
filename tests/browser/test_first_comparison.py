"""What a user does on the first day, on real parts: add a host, measure two commits, compare."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.fleet.services import save_profile
from orchestrator.runs.models import Trial
from tests.browser.conftest import log_in
from tests.browser.screenshots import wait_until_drawn
from tests.support.engine import ROOT, Engine, running_engine
from tests.support.factories import DEFINITION, make_definition, make_personas, make_project
from tests.support.sshd import SshServer, start_sshd

pytestmark = [pytest.mark.browser, pytest.mark.engine, pytest.mark.slow]

HELLO = (ROOT / "agents" / "suites" / "hello" / "server.py").read_text()
SLOWER = HELLO.replace("WORK = 50", "WORK = 1000")
#: Two more than a verdict needs: a busy machine may void a trial, and its block with it.
ROUNDS = 7
SEVEN_ROUNDS = DEFINITION.replace("rounds: 5", f"rounds: {ROUNDS}")


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def engine(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as running:
        settings.DATA_DIR = running.data_dir
        yield running


@pytest.fixture
def page(browser: Browser, live_server: Any) -> Iterator[Page]:
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_a_host_is_added_and_two_commits_are_measured_and_compared(
    page: Page, engine: Engine, machine: SshServer, live_server: Any, tmp_path: Path
) -> None:
    alice = make_personas().alice
    project, shas = make_project(
        alice, tmp_path / "origin", [{"server.py": HELLO}, {"server.py": SLOWER}]
    )
    make_definition(alice, project, source=SEVEN_ROUNDS)
    save_profile(member=alice, slug="rack", name="Rack server")
    log_in(page)
    add_host(page, machine)
    share_host(page)
    start_run(page, shas)
    expect(page.locator("[role=progressbar], progress").first).to_be_visible()
    # Nobody reloads: the page shows the end by itself.
    expect(page.locator(".badge[data-state=finished]").first).to_be_visible(timeout=120_000)
    card = page.get_by_role("link", name="Open the comparison")
    assert set(Trial.objects.values_list("state", flat=True)) == {"measured"}

    card.click()
    expect(page.locator("body")).to_contain_text(f"{shas[1][:10]} is a regression")
    wait_until_drawn(page)
    page.get_by_role("link", name="History").click()
    expect(page.locator("table tbody tr")).to_have_count(2)


def add_host(page: Page, machine: SshServer) -> None:
    page.goto("/hosts/new")
    page.get_by_label("Name").fill("rack-1")
    page.get_by_label("Address").fill(machine.host)
    page.get_by_label("Port").fill(str(machine.port))
    page.get_by_label("User", exact=True).fill(machine.user)
    page.get_by_label("Paste a private key").check()
    page.get_by_label("Private key", exact=True).fill(machine.client_private_key)
    page.get_by_label("Work directory").fill(str(machine.work_dir))
    page.get_by_role("button", name="Add and check").click()
    page.get_by_role("button", name="This is my host: pin this key").click()
    expect(page.get_by_text("rack-1 is ready")).to_be_visible(timeout=60_000)


def share_host(page: Page) -> None:
    """Its trials stay usable next to other tests."""
    page.goto("/hosts/")
    page.get_by_role("link", name="rack-1", exact=True).click()
    page.get_by_text("Host settings").click()
    page.get_by_label("Shared with other work").check()
    page.get_by_role("button", name="Save").first.click()
    expect(page.locator("dl.facts dt", has_text="Shared")).to_be_visible()


def start_run(page: Page, shas: list[str]) -> None:
    page.goto("/runs/new")
    page.get_by_label("Baseline").fill(shas[0][:10])
    page.get_by_label("Contender", exact=True).fill("main")
    page.get_by_label("rack-1").check()
    expect(page.locator("#plan dt:has(a:text-is('Trials')) + dd")).to_have_text(str(2 * ROUNDS))
    page.get_by_role("button", name="Start run").click()
    page.get_by_role("heading", name="Hello run").wait_for()
