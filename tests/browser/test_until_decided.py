"""A run until decided, from its form to its end in the browser."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project
from orchestrator.runs.models import InterimAnalysis, Run
from tests.support.factories import DEFINITION, make_definition, make_run
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_the_plan_becomes_a_range_when_it_is_chosen(page: Page, world: World) -> None:
    page.goto("/runs/new")
    page.get_by_label("Benchmark").select_option("server/hello")
    page.get_by_label("Baseline").fill(world.shas[0])
    page.get_by_label("Contender", exact=True).fill(world.shas[1])
    page.get_by_role("checkbox", name="here").check()
    plan = page.locator("#plan")
    expect(plan).to_contain_text("Estimated time")
    expect(plan).not_to_contain_text("usually")
    page.get_by_text("More options").click()
    page.get_by_label("When each case is decided", exact=True).check()
    expect(plan).to_contain_text("5 to 20")
    expect(plan).to_contain_text("usually")
    expect(plan).to_contain_text("interim analyses after 5, 7, 10, 15, 20")
    page.get_by_label("Budget, minutes").fill("0.5")
    expect(plan).to_contain_text("30 s of machine time")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/")
    expect(page.locator("main")).to_contain_text("until decided, at most 20 rounds within 30 s")
    expect(page.locator("main")).to_contain_text("first analysis after 5 clean blocks; 0 done")


def test_the_first_places_of_a_contest_end_a_run(page: Page, world: World) -> None:
    source = DEFINITION.replace("connections: [4]", "connections: [4, 8]\ncontest: connections")
    make_definition(world.personas.alice, Project.objects.get(), source=source)
    page.goto("/runs/new")
    page.get_by_label("Benchmark").select_option("server/hello")
    page.get_by_label("Baseline").fill(world.shas[0])
    page.get_by_label("Contender", exact=True).fill("")
    page.get_by_role("checkbox", name="here").check()
    page.get_by_text("More options").click()
    expect(page.get_by_label("First places", exact=True)).to_be_hidden()
    page.get_by_label("When each value of a contest is decided").check()
    expect(page.get_by_text("needs a value to compare with")).to_be_visible()
    page.get_by_label("When the order of the first places of a contest is decided").check()
    page.get_by_label("First places", exact=True).fill("2")
    expect(page.locator("#plan")).to_contain_text("5 to 20")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/")
    shown = "until the order of the first places is decided, at most 20 rounds"
    expect(page.locator("main")).to_contain_text(shown)
    assert Run.objects.get(until="ranked").places == 2


def _create_analysis(run: Run, **found: Any) -> None:
    job = run.jobs.get()
    values = {"excluded": 0, "decided": False, "futile": False, "p_values": [0.2], **found}
    InterimAnalysis.objects.create(job=job, case=job.trials.all()[0].case, **values)


def test_the_page_shows_a_decided_case_immediately(page: Page, world: World) -> None:
    run = make_run(world.personas.alice, world.shas[:2], until="decided")
    trials = run.jobs.get().trials
    run.jobs.update(state="measuring", phase="measuring")
    Run.objects.filter(pk=run.pk).update(state="running")
    page.goto(f"/runs/{run.pk}/")
    cases = page.get_by_role("region", name="Cases")
    expect(cases).to_contain_text("0 of 1 done")
    trials.filter(round__lte=5).update(state="measured", validity="valid")
    _create_analysis(
        run,
        blocks=5,
        verdict="inconclusive",
        message="not decided: p50 +1 %",
        needed_blocks=11,
        needed_least=8,
        needed_most=20,
    )
    expect(cases).to_contain_text("after 5 blocks: not decided: p50 +1 %; needs about 3 to 15 more")
    expect(page.locator(".left")).to_contain_text("between")
    trials.filter(round__lte=7).update(state="measured", validity="valid")
    trials.filter(round__gt=7).update(state="not needed", message="decided after 7 blocks")
    _create_analysis(run, blocks=7, verdict="equivalent", decided=True, message="no change")
    expect(cases).to_contain_text("1 of 1 done")
    expect(cases).to_contain_text("decided after 7 blocks: no change")
    expect(page.locator("#live")).to_contain_text("14 of at most 40 trials, 26 not needed")
