"""A backfill with the mouse: the estimate is seen before the start."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.runs.backfills import BackfillRequest, load_backfill_runs, start_backfill
from orchestrator.runs.earlier_commits import CommitSelection
from orchestrator.runs.models import Backfill, Job, Run
from tests.support.factories import commit_files, finish_run, git
from tests.support.fetches import fetch_now
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_the_form_shows_the_estimate_then_starts_and_cancels(page: Page, world: World) -> None:
    folder = world.repository
    for number in range(4, 9):
        commit_files(folder, {"file.txt": f"{number}\n"}, number)
    git(folder, "tag", "v1.0")
    fetch_now(world.project)

    page.goto("/runs/")
    page.get_by_role("link", name="Backfill", exact=True).click()
    expect(page.get_by_label("here")).to_be_checked()
    expect(page.get_by_role("button", name="Start backfill")).to_have_count(0)
    page.get_by_label("Tags", exact=True).check()
    expect(page.get_by_label("Number of commits")).to_be_hidden()
    page.get_by_label("Tags that match").fill("v*")
    page.get_by_role("button", name="Show estimate").click()
    plan = page.locator("#plan")
    expect(plan).to_contain_text("Commits1")

    page.get_by_label("The last commits of a branch").check()
    page.get_by_label("Number of commits").fill("6")
    page.get_by_label("Measure 1 in").fill("2")
    page.get_by_role("button", name="Update estimate").click()
    expect(plan).to_contain_text("Commits3")
    expect(plan).to_contain_text("Machine time")
    assert not Backfill.objects.exists()

    page.get_by_role("button", name="Start backfill").click()
    expect(page.get_by_role("heading", name="Backfill of Hello")).to_be_visible()
    expect(page.get_by_role("row", name="version 8")).to_be_visible()
    page.get_by_role("button", name="Cancel 3 runs").click()
    expect(page.get_by_text("3 runs cancelled.")).to_be_visible()
    assert {run.state for run in Backfill.objects.get().runs.all()} == {"cancelled"}


def _start(world: World) -> list[Run]:
    """Return the queued runs of a backfill of three commits."""
    selection = CommitSelection(source="last", count=3)
    request = BackfillRequest(benchmark="hello", hosts=("here",), selection=selection, again=True)
    return load_backfill_runs(start_backfill(member=world.alice, request=request))


def test_the_pages_show_the_progress_without_a_reload(page: Page, world: World) -> None:
    first, second, third = _start(world)
    listed, loads = page.context.new_page(), []
    listed.goto("/backfills/")
    page.goto(f"/backfills/{first.backfill_id}/")
    for each in (page, listed):
        each.on("load", lambda _: loads.append("reloaded"))
        expect(each.get_by_text("3 ○ queued")).to_be_visible()

    Run.objects.filter(pk=first.pk).update(state="running")
    for each in (page, listed):
        expect(each.get_by_text("1 ◑ running")).to_be_visible()
    finish_run(first, [1000])
    Job.objects.filter(run=second).update(state="failed", message="the build failed: no server.py")
    Run.objects.filter(pk=second.pk).update(state="failed")

    expect(page.get_by_role("row", name="the build failed: no server.py")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel 1 run")).to_be_visible()
    expect(listed.get_by_role("row", name="1 failed 1 finished 1 queued")).to_be_visible()
    # A button that came with a reloaded part works.
    page.get_by_role("button", name="Cancel 1 run").click()
    expect(page.get_by_text("1 run cancelled.")).to_be_visible()
    assert Run.objects.get(pk=third.pk).state == "cancelled"
    expect(listed.get_by_role("row", name="1 cancelled 1 failed 1 finished")).to_be_visible()
    assert loads == ["reloaded"], "only the pressed button loaded a page"

    requests: list[str] = []
    listed.on("request", lambda request: requests.append(request.url))
    listed.wait_for_timeout(4_500)
    assert requests == [], "nothing can change any more"
