"""The delay until an open page of a run shows a stored trial."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from django.db import transaction
from playwright.sync_api import Page, sync_playwright

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.runs.models import Job, Run, Trial
from perf.harness.report import Requirement, render_table
from tests.browser.chromium import ARGUMENTS
from tests.support.demo_team import DemoTeam
from tests.support.factories import DEFINITION, make_definition, make_run, record_trial

CASES = {"small": 4, "large": 300}
TRIALS = 30
#: The page polls at this interval; results are stored at random times in between.
ASKED_EVERY_S = 1.5
GOLDEN = 0.618
LIMIT_S = 2.0
#: Record when the page has painted how many trials are done: {number: milliseconds}.
WATCH = """() => {
  window.painted = {};
  let known = 0;
  new MutationObserver(() => {
    const done = document.querySelector("#live progress").value;
    if (done <= known) return;
    known = done;
    requestAnimationFrame(() => { window.painted[done] = Date.now(); });
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
}"""

#: "small" or "large" → seconds of each trial
Waits = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """A logged-in browser, at the address of a served Pitwall."""

    chromium: str
    base: str
    cookie: str


def measure_waits(demo_team: DemoTeam, visit: LoggedIn, *, short: bool) -> dict[str, list[float]]:
    """Return by the size of the run how long each of its trials took to be shown."""
    # Playwright keeps an event loop in this thread, so Django would refuse database access.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    sizes, trials = (("small",), 2) if short else (tuple(CASES), TRIALS)
    runs = {size: _make_run(demo_team, size) for size in sizes}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=visit.chromium, args=ARGUMENTS)
        context = browser.new_context(base_url=visit.base)
        name, _, value = visit.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": visit.base}])
        waits = {}
        for size, run in runs.items():
            waits[size] = list(_measure_page_waits(context.new_page(), run, trials))
            times = " ".join(f"{each:.2f}" for each in waits[size])
            print(f"  {size} run, shown after: {times} s", flush=True)
        browser.close()
    return waits


def get_measured(waits: Waits) -> dict[str, float]:
    return {
        f"live_{size}_{name}_s": compute(seconds)
        for size, seconds in waits.items()
        for name, compute in (("median", median), ("longest", max))
    }


def find_requirement(key: str) -> Requirement | None:
    return Requirement(relation="<", limit=LIMIT_S) if key.endswith("_longest_s") else None


def format_text(waits: Waits) -> str:
    rows = [
        [size, str(CASES[size]), str(len(each)), f"{median(each):.2f} s", f"{max(each):.2f} s"]
        for size, each in waits.items()
    ]
    return render_table(["live run", "cases", "trials", "shown after (median)", "longest"], rows)


def _make_run(demo_team: DemoTeam, size: str) -> Run:
    """Return a run with `size` cases, whose first job measures."""
    alice = demo_team.personas.alice
    project = Project.objects.get(slug="server")
    make_definition(alice, project, slug=f"live-{size}", source=_build_source(CASES[size]))
    run = make_run(alice, demo_team.shas[:2], benchmark=f"live-{size}")
    first = run.jobs.order_by("created_at", "pk")[0]
    Job.objects.filter(pk=first.pk).update(state="measuring", phase="measuring")
    Run.objects.filter(pk=run.pk).update(state="running", started_at=utc_now())
    return run


def _build_source(cases: int) -> str:
    pages = ["one", "two", "three"][: max(1, cases // 100)]
    axes = f"{list(range(1, cases // len(pages) + 1))}\n  page: [{', '.join(pages)}]"
    return DEFINITION.replace("[4]", axes).replace("path: /hello\n", 'path: "/{page}"\n')


def _measure_page_waits(page: Page, run: Run, trials: int) -> Iterator[float]:
    page.goto(f"/runs/{run.pk}/")
    page.evaluate(WATCH)
    job = run.jobs.order_by("created_at", "pk")[0]
    planned = job.trials.filter(state="planned").order_by("position")[:trials]
    for number, trial in enumerate(planned.select_related("case", "variant__commit"), start=1):
        time.sleep(ASKED_EVERY_S * (number * GOLDEN % 1))
        _store(trial)
        stored_ms = time.time() * 1000
        painted = page.wait_for_function("number => window.painted[number]", arg=number, polling=50)
        yield (painted.json_value() - stored_ms) / 1000
    page.close()


def _store(trial: Trial) -> None:
    """Store a trial as the engine does: its state and its readings in one transaction."""
    now = utc_now()
    rate = 1000.0 + 5 * (trial.position % 7)
    readings = {"requests.rate": rate, "latency.p50": 4 / rate, "cpu.seconds_per_1k": 900 / rate}
    with transaction.atomic():
        Trial.objects.filter(pk=trial.pk).update(
            state="measured", validity="valid", host=trial.job.host_id, attempt=1,
            started_at=now, ended_at=now, provenance={},
        )  # fmt: skip
        record_trial(trial, readings)
