"""Jobs and builds while they go on: what was opened stays open, logs grow by themselves."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.runs.models import Build, Job, Run, Trial
from tests.support.factories import DEFINITION, make_definition, make_run
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def run(world: World) -> Run:
    run = make_run(world.personas.alice, world.shas[:2])
    Job.objects.filter(run=run).update(state="preparing", phase="building")
    Run.objects.filter(pk=run.pk).update(state="running")
    return run


@pytest.fixture
def build(run: Run) -> Build:
    job = run.jobs.get()
    commit = run.variants.all()[0].commit
    return Build.objects.create(
        job=job, host=job.host, commit=commit, log="cc one.c\n", started_at=utc_now()
    )


def _write(build: Build, text: str, **changes: Any) -> None:
    log = build.log + text
    Build.objects.filter(pk=build.pk).update(log=log, log_offset=len(log), **changes)


def test_an_open_build_stays_open_while_its_log_grows(page: Page, build: Build) -> None:
    page.goto(f"/runs/{build.job.run_id}/")
    row = page.locator("details.build")
    expect(row.locator("pre")).to_have_text("cc one.c")
    row.locator("summary").click()
    _write(build, "cc two.c\n")
    expect(row.locator("pre")).to_have_text("cc one.c\ncc two.c")
    expect(row.locator("pre")).to_be_hidden()
    row.locator("summary").click()
    expect(row.locator("pre")).to_have_text("cc one.c\ncc two.c")
    _write(build, "cc two.c\ncc three.c\n", state="done", seconds=2.0)
    expect(row.locator("summary")).to_contain_text("done")
    expect(row.locator("pre")).to_be_visible()


def test_a_log_is_followed_until_its_build_ends(page: Page, build: Build) -> None:
    page.goto(f"/runs/{build.job.run_id}/")
    page.get_by_role("link", name="The whole log").click()
    log = page.locator("#log")
    expect(log.locator("pre")).to_have_text("cc one.c")
    with page.expect_response(lambda answer: answer.status == 304):
        pass
    _write(build, "cc two.c\n")
    expect(log).to_contain_text("cc two.c")
    _write(build, "cc two.c\nld\n", state="failed", message="ld ended with 1")
    expect(log).to_contain_text("ld ended with 1")
    expect(log).not_to_have_attribute("hx-trigger", "every 1500ms")

    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.wait_for_timeout(2_500)
    assert urls == []


def test_a_profile_with_a_remote_load_generator_is_requested(page: Page, world: World) -> None:
    profile = save_profile(member=world.personas.alice, slug="t490s", name="T490s")
    for name in ("left", "right"):
        host = add_local_host(
            member=world.personas.alice, name=name, profile=profile, python="python3"
        )
        Host.objects.filter(pk=host.pk).update(data_address="10.9.0.1", tags=["load"])
    page.goto("/runs/new")
    page.get_by_label("Contender", exact=True).fill("main")
    page.get_by_label("any T490s").check()
    page.get_by_text("More options").click()
    page.get_by_text("Separate server and load hosts").click()
    page.get_by_label("Load from").select_option("tag:load")
    expect(page.locator("#plan")).to_contain_text("of machine time")
    expect(page.locator("#plan")).to_contain_text("subject does not use {bind}")
    page.get_by_role("button", name="Start run").click()
    expect(page.locator(".roles")).to_contain_text("target any T490s generator any tagged load")


def _read_top(row: Locator) -> float:
    """Where it is seen in the window."""
    box = row.bounding_box()
    assert box is not None
    return box["y"]


def test_the_layout_is_stable_while_cases_progress_and_one_is_cancelled(
    page: Page, world: World
) -> None:
    """Focus, scroll and what was opened stay as they are; an answer without news is a 304."""
    alice = world.personas.alice
    source = DEFINITION.replace("[4]", "[1, 2, 4, 8, 16, 32, 64, 128]")
    make_definition(alice, world.run.definition.benchmark.project, slug="many", source=source)
    run = make_run(alice, world.shas[:2], benchmark="many")
    first = run.jobs.order_by("created_at", "pk")[0]
    Run.objects.filter(pk=run.pk).update(state="running")
    Job.objects.filter(pk=first.pk).update(state="measuring", phase="measuring")
    cases = list(first.trials.order_by("case").values_list("case", flat=True).distinct())
    page.goto(f"/runs/{run.pk}/")
    last = page.locator(f"#case-{cases[-1]}")
    expect(last.locator("td").first).to_have_text(re.compile(r"queued 0/5"))
    button = last.get_by_role("button", name="Cancel")
    button.focus()
    assert page.evaluate("scrollY") > 0
    before = _read_top(last)
    with page.expect_response(lambda answer: answer.status == 304):
        pass

    first.trials.filter(case=cases[0], round=1).update(state="measured", validity="valid")
    first.trials.filter(case=cases[1], round=1).update(state="failed")
    expect(page.locator(f"#case-{cases[0]} td").first).to_have_text(re.compile("under way 1/5"))
    expect(page.locator(f"#case-{cases[1]} td").first).to_contain_text("1 failed")
    expect(button).to_be_focused()
    assert _read_top(last) == pytest.approx(before, abs=1)

    page.keyboard.press("Enter")
    expect(last.locator("td").first).to_contain_text("cancelled")
    assert _read_top(last) == pytest.approx(before, abs=1)
    left = Trial.objects.filter(job__run=run, case=cases[-1])
    assert set(left.values_list("state", "message")) == {("skipped", "cancelled by alice")}
    page.get_by_role("link", name="Failed 1").click()
    expect(page.locator(".case-states tbody tr")).to_have_count(1)
    page.get_by_text("Last failure").click()
    Job.objects.filter(run=run).update(state="finished")
    Run.objects.filter(pk=run.pk).update(state="finished", ended_at=utc_now())
    expect(page.get_by_role("heading", name="Retention")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    expect(page.get_by_role("link", name="The failed trial")).to_be_visible()
