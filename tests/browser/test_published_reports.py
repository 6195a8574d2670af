"""A report for publication in a real browser: its charts, text, visibility, bundle and rerun."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.reports.models import SavedReport
from orchestrator.reports.saved_reports import save_report
from tests.browser.page_checks import too_wide, violations
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = """\
version: 1
title: Published
benchmark: server/hello
commit: all
tables:
  - title: Rates
    rows: [connections, commit]
    columns: [{title: Rate, metric: requests.rate}]
    sort: Rate
    charts: [{kind: ranks}, {kind: bars}, {kind: heatmap}]
  - title: Latency
    rows: [metric]
    metrics: [{metric: latency.p50, unit: ms}, {metric: latency.p99, unit: ms}]
    columns: [{title: Latency, across: [commit]}]
"""


def test_a_report_is_published_and_measured_again(
    browser: Browser, page: Page, world: World, tmp_path: Path
) -> None:
    save_report(member=world.alice, source=TEXT, slug="published")
    page.goto("/reports/published/")
    expect(page.locator(".report-chart")).to_have_count(4)
    expect(page.get_by_role("img", name="Ranks: Rates")).to_be_visible()
    for width in (360, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator(".report-chart").first.locator("svg:visible")).to_have_count(1)
        assert too_wide(page) == []
    with page.expect_download() as picture:
        page.get_by_role("link", name="Download chart 2 as SVG").click()
    assert "<svg" in picture.value.path().read_text()

    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text (Markdown)").fill("## What we found\n\n*Nothing* yet.")
    page.get_by_role("button", name="Save report").click()
    expect(page.get_by_role("heading", name="What we found")).to_be_visible()

    page.get_by_role("link", name="Visibility").click()
    page.get_by_label("Hardware:").check()
    page.get_by_role("button", name="Save visibility").click()
    expect(page.get_by_text("The visibility of “Published” was saved.")).to_be_visible()
    assert SavedReport.objects.get().shows_hardware

    with page.expect_download() as bundle:
        page.get_by_role("link", name="Download ZIP").click()
    with zipfile.ZipFile(bundle.value.path()) as archive:
        archive.extractall(tmp_path)
    check_offline(browser, tmp_path / "report" / "index.html")

    page.get_by_role("link", name="Measure this again").click()
    expect(page).to_have_url(re.compile("/runs/new"))
    expect(page.get_by_label("Rounds", exact=True)).to_have_value(str(world.run.rounds))
    expect(page.get_by_label("Baseline", exact=True)).to_have_value(
        re.compile("|".join(world.shas))
    )


def check_offline(browser: Browser, file: Path) -> None:
    """The page loads nothing, runs nothing, is accessible in both looks, and fits a phone."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    requests: list[Any] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", name="Published")).to_be_visible()
    expect(page.get_by_role("heading", name="Hardware")).to_be_visible()
    assert requests == [file.as_uri()]
    for scheme, width in (("light", 1200), ("dark", 360)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        assert violations(page) == []
        assert too_wide(page) == []
    page.goto((file.parent / "charts" / "chart-1.svg").as_uri())
    assert page.locator("svg text").count() > 3
    context.close()
