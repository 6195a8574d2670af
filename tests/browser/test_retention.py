"""Retention in a browser: changes, pins, and the reasons of removed data."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from orchestrator.core.clock import utc_now
from orchestrator.retention.pruning import prune
from orchestrator.runs.models import Run, Trial
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_an_admin_changes_the_retention_and_pins_a_commit(page: Page, world: World) -> None:
    page.goto("/benchmarks/")
    page.get_by_role("link", name="Server", exact=True).click()
    page.get_by_label("Raw output: days").fill("30")
    page.get_by_label("Single trials: days", exact=True).fill("800")
    page.get_by_role("button", name="Change the retention").click()
    expect(page.get_by_text("The retention was changed")).to_be_visible()

    page.get_by_label("Commit", exact=True).fill(world.shas[0][:10])
    page.get_by_label("Reason").fill("Release 1.0, which we compare with")
    page.get_by_role("button", name="Pin this commit forever").click()
    expect(page.get_by_role("cell", name="Release 1.0, which we compare with")).to_be_visible()


def test_pages_report_removed_data(page: Page, world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(ended_at=utc_now() - timedelta(days=500))
    prune(world.run.definition.benchmark.project, utc_now())
    trial = Trial.objects.filter(job__run=world.run).order_by("position")[0]

    page.goto(f"/trials/{trial.pk}/")
    message = f"Raw output was removed after 90 days, on {utc_now():%Y-%m-%d}"
    expect(page.get_by_text(message).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.get_by_role("link", name="retention of the project").click()
    expect(page.get_by_role("heading", name="Removed data")).to_be_visible()
    expect(page.get_by_role("row", name="Raw output")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.goto(f"/runs/{world.run.pk}/")
    page.get_by_label("Reason to pin this run").fill("the report of May")
    page.get_by_role("button", name="Pin this run").click()
    expect(page.get_by_text("Pinned: the report of May")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
