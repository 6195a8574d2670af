"""A backfill with the mouse: the estimate is seen before the start."""

import pytest
from playwright.sync_api import Page, expect

from orchestrator.runs.models import Backfill
from tests.support.factories import commit_files, git
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
