"""Asking for a run with the mouse and the keyboard: the grid of cases, commits, schedules."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project
from orchestrator.runs.models import Run, Schedule
from tests.browser import page_checks
from tests.support.busy_process import run_busy_process
from tests.support.engine import running_engine
from tests.support.factories import DEFINITION, git, make_definition
from tests.support.fetches import fetch_now
from tests.support.world import World

pytestmark = pytest.mark.browser

MATRIX = DEFINITION.replace("Hello", "Many").replace(
    "connections: [4]", "connections: [4, 8]\n  system: [quick, old, slow]\n  size: [s, l]"
)


def test_selecting_rows_and_columns_shows_their_duration(page: Page, world: World) -> None:
    project = world.run.definition.benchmark.project
    make_definition(world.personas.alice, project, slug="many", source=MATRIX)
    page.goto("/runs/new?benchmark=server/hello&contender=main&hosts=here")
    brief = page.locator("#run-brief")
    expect(brief).to_contain_text("1 case × 10 trials")
    expect(brief).to_contain_text("done about")
    expect(page.locator(".case-grid table")).to_have_count(0)

    page.get_by_label("Benchmark").select_option("server/many")
    expect(brief).to_contain_text("12 cases × 10 trials")
    page.get_by_text("More options").click()
    grid = page.locator("#case-grid")
    column = grid.get_by_role("button", name="8", exact=True)
    column.focus()
    page.keyboard.press("Enter")
    expect(brief).to_contain_text("6 cases × 10 trials")
    expect(column).to_have_attribute("data-state", "none")
    row = grid.get_by_role("button", name="old", exact=True)
    expect(row).to_have_attribute("data-state", "some")
    row.click()
    expect(row).to_have_attribute("data-state", "all")
    grid.get_by_label("l", exact=True).uncheck()
    expect(brief).to_contain_text("4 cases × 10 trials")
    expect(grid.get_by_label("old, 8")).to_be_checked()

    page.get_by_label("Baseline").press_sequentially("version 1")
    option = page.locator(f"datalist#refs option[value='{world.shas[0][:10]}']")
    expect(option).to_have_count(1)
    expect(page.locator("#id_baseline_error")).to_contain_text("is not the name of a commit")
    expect(page.locator("datalist#refs option")).to_have_count(1)
    page.get_by_label("Baseline").fill(world.shas[0][:10])
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/")
    run = Run.objects.latest("created_at")
    assert run.jobs.get().trials.values("case").distinct().count() == 4


def test_a_run_starts_with_one_button_and_no_field_filled_in(page: Page, world: World) -> None:
    page.goto("/runs/new")
    expect(page.get_by_label("Contender", exact=True)).to_have_value("main")
    expect(page.get_by_label("here")).to_be_checked()
    expect(page.locator("#run-brief")).to_contain_text("1 case × 10 trials")
    expect(page.get_by_label("Second contender")).to_be_hidden()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/")
    run = Run.objects.latest("created_at")
    assert [each.commit.sha for each in run.variants.all()] == world.shas[1:]


def test_another_project_brings_its_default_branch(page: Page, world: World) -> None:
    other = world.add_project()
    make_definition(
        world.alice, other, slug="nine", source=DEFINITION.replace("rounds: 5", "rounds: 9")
    )
    git(world.repository, "branch", "trunk", world.shas[1])
    Project.objects.filter(pk=other.pk).update(default_branch="trunk")
    fetch_now(other)
    page.goto("/runs/new?benchmark=server/hello")
    expect(page.locator("#run-brief")).to_contain_text("1 case × 10 trials")
    page.get_by_label("Benchmark").select_option("other/nine")
    expect(page.get_by_label("Contender", exact=True)).to_have_value("trunk")
    expect(page.locator("#id_rounds_helptext")).to_contain_text("9, as in the definition")
    expect(page.locator("#run-brief")).to_contain_text("1 case × 18 trials")
    expect(page.locator("#plan")).to_contain_text(world.shas[1][:10])


def test_a_schedule_is_created_on_a_phone(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto("/runs/new")
    expect(page.get_by_label("here")).to_be_checked()
    expect(page.locator("#run-brief")).to_contain_text("1 case × 10 trials")
    page.get_by_text("More options").click()
    expect(page.get_by_label("Branch", exact=True)).to_be_hidden()
    page.get_by_label("For each new commit on a branch").check()
    expect(page.get_by_label("Contender", exact=True)).to_be_hidden()
    page.get_by_label("Branch", exact=True).fill("main")
    expect(page.locator("#run-brief")).to_contain_text("1 case × 10 trials")
    expect(page.locator("#run-brief")).to_be_in_viewport()
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wider <= 0
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_role("heading", name="Schedules")).to_be_visible()
    assert Schedule.objects.get().branch == "main"


def test_a_busy_host_is_named_with_its_process_before_the_start(
    page: Page, world: World, tmp_path: Path
) -> None:
    with running_engine(tmp_path) as engine, run_busy_process(tmp_path, "backupd"):
        engine.wait_until_ready()
        page.goto("/runs/new?benchmark=server/hello&contender=main&hosts=here")
        notice = page.locator("#plan .notice", has_text="here is busy.")
        # On a busy machine other processes may use more CPU time than this one.
        busy = re.compile(r"other processes use \d+ % of a core \(.+\)")
        expect(notice).to_contain_text(busy, timeout=60_000)
        assert page_checks.violations(page) == []
        notice.get_by_role("link", name="What to do").click()
        expect(page.get_by_role("heading", name="Checks of here")).to_be_visible()


def test_several_builds_are_chosen_below_more_options(page: Page, world: World) -> None:
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    page.goto("/runs/new")
    page.locator("#id_rounds").fill("10")
    page.get_by_text("More options").click()
    page.get_by_label("Builds of each commit").fill("5")
    expect(page.locator("#plan")).to_contain_text("5 of each commit, on each host")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*-*/")
    assert Run.objects.latest("created_at").builds == 5
