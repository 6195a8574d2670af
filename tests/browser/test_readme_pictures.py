"""The pictures of the README show a real measurement: eight commits, three cases, one regression.

`make pictures` writes them into docs/images.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from devstack.git import commit_all, git
from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Trial
from tests.browser.conftest import log_in
from tests.browser.screenshots import picture_for_readme
from tests.support.engine import ROOT, Engine, running_engine
from tests.support.factories import make_definition, make_local_host, make_personas, make_run
from tests.support.fetches import fetch_now

pytestmark = [pytest.mark.browser, pytest.mark.engine, pytest.mark.quiet, pytest.mark.slow]

HELLO = (ROOT / "agents" / "suites" / "hello" / "server.py").read_text()
#: The subject of each commit, and how many hashes a request costs from it on.
COMMITS = {
    "Serve a greeting": 500,
    "Log the port at the start": 500,
    "Close idle connections": 500,
    "Read the headers once": 500,
    "Document the options": 500,
    "Check the token of each request": 560,
    "Test the parser": 560,
    "Drain connections at SIGTERM": 560,
}
SLOWER = 5
DEFINITION = """\
version: 1
title: Greeting
subject:
  start: ["{python}", "server.py", "--bind", "{bind}", "--port", "{port}"]
  ready: {path: /hello, body: "Hello, World!", timeout_s: 10}
load:
  path: /hello
  connections: "{connections}"
  duration_s: 2
  warmup_s: 0.5
matrix:
  connections: [4, 16, 64]
rounds: 6
cooldown_s: 0.2
"""


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


def test_a_measured_regression_is_shown_by_comparison_history_and_alert(
    page: Page, engine: Engine, tmp_path: Path
) -> None:
    alice = make_personas().alice
    shas = make_greeting_repository(tmp_path / "greeting")
    project = create_project(
        member=alice, slug="server", name="Server", repository_url=str(tmp_path / "greeting")
    )
    fetch_now(project)
    make_definition(alice, project, source=DEFINITION)
    make_local_host(alice)

    run = engine.finish(make_run(alice, shas, rounds=6), timeout_s=1800)
    assert run.state == "finished"
    assert set(Trial.objects.values_list("state", flat=True)) == {"measured"}
    engine.wait_for(lambda: Alert.objects.exists(), timeout_s=600)

    folder = Path(os.environ.get("PITWALL_PICTURES", tmp_path / "images"))
    log_in(page)
    parent, culprit = shas[SLOWER - 1], shas[SLOWER]
    page.goto(f"/compare/?benchmark=server/hello&baseline={parent}&contender={culprit}")
    assert "regress" in page.locator("main").inner_text()
    picture_for_readme(page, folder / "compare.png")
    page.goto("/history/?benchmark=server/hello")
    picture_for_readme(page, folder / "history.png")
    page.goto("/alerts/")
    page.locator("main table tbody th a").first.click()
    assert culprit[:7] in page.locator("main").inner_text()


def make_greeting_repository(folder: Path) -> list[str]:
    """One commit a day of November 2026; the hashes in order."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for day, (subject, hashes) in enumerate(COMMITS.items(), start=9):
        source = HELLO.replace("WORK = 50\n", f"WORK = {hashes}\n")
        (folder / "server.py").write_text(f"{source}\n# Changed on day {day}.\n")
        commit_all(folder, subject, date=f"2026-11-{day:02}T09:00:00Z")
    return git(folder, "log", "--reverse", "--format=%H").split()
