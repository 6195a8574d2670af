"""The pictures of the README: nine measured commits. The sixth is slower.

`make pictures` writes them. Other test runs do not collect this file.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from devstack.git import commit_all, run_git
from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import RUN_ENDED
from orchestrator.web.alerts.presenters import build_history_url
from tests.browser.conftest import log_in
from tests.browser.screenshots import wait_until_drawn
from tests.support.engine import ROOT, Engine, running_engine
from tests.support.factories import make_definition, make_local_host, make_personas, make_run
from tests.support.fetches import fetch_now
from tests.support.proc import command_line

SERVER = (ROOT / "agents" / "suites" / "hello" / "server.py").read_text()
#: The subject of each commit, and the number of hashes per request.
COMMITS = {
    "Serve a greeting": 500,
    "Log the port": 500,
    "Close idle connections": 500,
    "Read headers once": 500,
    "Document the options": 500,
    "Check a token": 560,
    "Test the parser": 560,
    "Drain at SIGTERM": 560,
    "Name the threads": 560,
}
SLOWER = list(COMMITS).index("Check a token")
DEFINITION = """\
version: 1
title: Greeting
subject:
  start: ["{python}", "server.py", "--bind", "{bind}", "--port", "{port}"]
  ready: {path: /hello, body: "Hello, World!", timeout_s: 10}
load:
  path: /hello
  connections: "{connections}"
  duration_s: 1.5
  warmup_s: 0.3
matrix:
  connections: [4, 16, 64]
rounds: 5
cooldown_s: 0.2
"""
BENCHMARK = "greeting"
WIDTH = 1280


@pytest.fixture
def engine(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as running:
        settings.DATA_DIR = running.data_dir
        yield running


def test_pictures_show_a_regression_that_was_measured(
    engine: Engine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    repository = tmp_path / BENCHMARK
    shas = make_repository(repository)
    run = start_run(repository, shas)
    wait_for(engine, lambda: is_ended(run), timeout_s=1200)
    assert set(Trial.objects.filter(job__run=run).values_list("state", flat=True)) == {"measured"}
    wait_for(engine, Alert.objects.filter(confirmed=True).exists, timeout_s=600)
    wait_for(engine, lambda: all(map(is_ended, Run.objects.all())), timeout_s=600)

    # Only now: a browser and a server would disturb the measurement.
    browser: Browser = request.getfixturevalue("browser")
    context = browser.new_context(
        base_url=request.getfixturevalue("live_server").url,
        viewport={"width": WIDTH, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    log_in(page)
    before, slower = shas[SLOWER - 1 : SLOWER + 1]
    page.goto(f"/compare/?benchmark={BENCHMARK}/{BENCHMARK}&baseline={before}&contender={slower}")
    picture_main(page, "compare.png")
    expect(page.locator("#headline")).to_contain_text("is a regression")
    # The page that the alert links to.
    page.goto(build_history_url(Alert.objects.filter(confirmed=True)[0].change_point))
    picture_main(page, "history.png")
    expect(page.locator("main")).to_contain_text("confirmed")
    context.close()


def make_repository(folder: Path) -> list[str]:
    """Make one commit for each day; return the hashes in order."""
    folder.mkdir()
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    for day, (subject, hashes) in enumerate(COMMITS.items(), start=9):
        source = SERVER.replace("WORK = 50\n", f"WORK = {hashes}\n")
        (folder / "server.py").write_text(f"{source}\n# Changed on day {day}.\n")
        commit_all(folder, subject, date=f"2026-11-{day:02}T09:00:00Z")
    return run_git(folder, "log", "--reverse", "--format=%H").split()


def start_run(repository: Path, shas: list[str]) -> Run:
    alice = make_personas().alice
    project = create_project(
        member=alice, slug=BENCHMARK, name="Greeting", repository_url=str(repository)
    )
    fetch_now(project)
    make_definition(alice, project, slug=BENCHMARK, source=DEFINITION)
    host = make_local_host(alice, name="this-machine")
    return make_run(alice, shas, benchmark=BENCHMARK, hosts=(host.name,))


def is_ended(run: Run) -> bool:
    run.refresh_from_db()
    return run.state in RUN_ENDED


def wait_for(engine: Engine, condition: Callable[[], bool], *, timeout_s: float) -> None:
    """Wait for the condition. Suspend Pitwall's processes while the host measures.

    Here they share the CPUs with the measured server. The host needs them only between two rounds.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not reached within {timeout_s} s"
        time.sleep(0.5)
        if is_measuring(engine):
            # The step that started the round ends first.
            time.sleep(1)
            with suspended(engine):
                while is_measuring(engine):
                    time.sleep(1)


def is_measuring(engine: Engine) -> bool:
    """Return whether the agent executes a round."""
    pids = [
        path.read_text().split()[0]
        for path in engine.data_dir.glob("hosts/*/jobs/*/*/supervisor.pid")
    ]
    return any(pid and command_line(int(pid)) for pid in pids)


@contextmanager
def suspended(engine: Engine) -> Iterator[None]:
    assert engine.worker is not None, "it was started"
    os.killpg(engine.worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(engine.worker.pid, signal.SIGCONT)


def picture_main(page: Page, name: str) -> None:
    """Write the page without its footer to the folder of PITWALL_PICTURES."""
    folder = Path(os.environ["PITWALL_PICTURES"])
    folder.mkdir(parents=True, exist_ok=True)
    wait_until_drawn(page)
    # Chart.js paints in the next frame.
    page.wait_for_timeout(200)
    box = page.locator("main").bounding_box()
    assert box is not None
    page.screenshot(
        path=folder / name,
        full_page=True,
        clip={"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"]},
    )
