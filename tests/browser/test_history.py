"""The history in a real browser: zoom, pointer, keys, what is in the address, the trials behind."""

import hashlib
import math
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from playwright.sync_api import Browser, Page, expect

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.results.models import ChangePoint, Series
from tests.browser.conftest import give_session
from tests.browser.screenshots import wait_until_drawn
from tests.support.factories import record
from tests.support.world import World

pytestmark = pytest.mark.browser

COMMITS = 60


@pytest.fixture
def shas(world: World) -> list[str]:
    """Sixty commits more of the world's project, oldest first; at the fortieth the level falls."""
    benchmark, case, host = Benchmark.objects.get(), Case.objects.get(), Host.objects.get()
    Commit.objects.update(position=None)
    now = utc_now()
    made = Commit.objects.bulk_create(
        Commit(
            project=benchmark.project,
            sha=hashlib.sha1(str(place).encode(), usedforsecurity=False).hexdigest(),
            parents=[],
            subject=f"Step {place}",
            author="Ada",
            committed_at=now - timedelta(hours=COMMITS - place),
            position=place,
            mainline=True,
        )
        for place in range(COMMITS)
    )
    with transaction.atomic():
        record([trial for commit in made for trial in _trials(case, host, commit)])
    ChangePoint.objects.create(
        series=Series.objects.get(metric__key="requests.rate"), commit=made[40], before=made[39],
        kind="alert", change=-0.1, low=-0.11, high=-0.09, p_value=1e-9, level_before=1000,
        level_after=900, regressed=True, recent=False, state="confirmed", found_at=now,
        revised_at=now,
    )  # fmt: skip
    return [commit.sha[:8] for commit in made]


def _trials(case: Case, host: Host, commit: Commit) -> list[MeasuredRow]:
    level = 1000 if (commit.position or 0) < 40 else 900
    return [
        MeasuredRow(
            id=uuid4(),
            benchmark=case.benchmark_id,
            case=case.pk,
            host=host.pk,
            commit=commit.pk,
            at=commit.committed_at,
            validity="valid",
            readings={
                "requests.rate": level * (1 + math.sin(number * 7 + level) / 100),
                "latency.p99": 0.02,
            },
            configuration=5,
        )
        for number in range(5)
    ]


def _open(page: Page, query: str = "") -> Any:
    page.goto(f"/history/?benchmark=server/hello{query}")
    wait_until_drawn(page)
    return page.get_by_role("slider").first


def _read_scale(page: Page) -> tuple[float, float]:
    scale = "Chart.getChart(document.querySelector('canvas[data-chart=history]')).scales.x"
    low, high = page.evaluate(f"[{scale}.min + 0.5, {scale}.max - 0.5]")
    return round(low, 3), round(high, 3)


def test_arrow_keys_move_along_the_commits_and_announce_them(page: Page, shas: list[str]) -> None:
    chart = _open(page)
    chart.focus()
    page.keyboard.press("Home")
    expect(chart).to_have_attribute("aria-valuenow", "0")
    for _ in range(40):
        page.keyboard.press("ArrowRight")

    expect(page.locator("#pointed-commit")).to_contain_text(f"{shas[40]} Step 40 · Ada")
    expect(page.locator(".legend .description")).to_contain_text("▼ regressed −10.0 %, confirmed")
    text = chart.get_attribute("aria-valuetext") or ""
    assert text.startswith(f"commit {shas[40]}")
    assert "5 trials" in text


def test_the_zoom_is_in_the_address(page: Page, shas: list[str]) -> None:
    chart = _open(page)
    assert _read_scale(page) == (0, COMMITS - 1)
    chart.focus()
    for key in ("End", "+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_url("**from=*")
    page.wait_for_timeout(200)
    before = _read_scale(page)
    assert before[1] - before[0] < COMMITS / 2
    assert f"to={shas[int(before[1])]}" in page.url

    page.goto(page.url)
    wait_until_drawn(page)
    after = _read_scale(page)
    assert after == (math.ceil(before[0]), math.floor(before[1]))
    page.get_by_role("button", name="All").click()
    page.wait_for_function("() => !location.search.includes('from=')")
    assert _read_scale(page) == (0, COMMITS - 1)


def test_the_wheel_zooms_at_the_pointer_and_dragging_moves(page: Page, shas: list[str]) -> None:
    chart = _open(page)
    box = chart.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    for _ in range(4):
        page.mouse.wheel(0, -200)
    page.wait_for_url("**from=*")
    page.wait_for_timeout(200)
    low, high = _read_scale(page)
    assert low > 5
    assert low < 0.72 * COMMITS < high

    page.mouse.down()
    page.mouse.move(middle[0] + box["width"] / 4, middle[1], steps=5)
    page.mouse.up()
    page.wait_for_timeout(100)
    moved_low, moved_high = _read_scale(page)
    assert moved_low < low
    assert moved_high - moved_low == pytest.approx(high - low, abs=0.01)


def test_shift_and_drag_zooms_to_a_range(page: Page, shas: list[str]) -> None:
    chart = _open(page)
    box = chart.bounding_box()
    assert box is not None
    across = box["y"] + box["height"] / 2
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.4, across)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, across, steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_url("**from=*")
    low, high = _read_scale(page)
    assert 15 < low < 30 < high < 45


def test_a_click_shows_the_trials_of_a_commit(page: Page, shas: list[str]) -> None:
    chart = _open(page, f"&from={shas[38]}&to={shas[42]}")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel = page.locator("#point article")
    expect(panel).to_contain_text("5 trials")
    assert "at=" in page.url
    page.reload()
    expect(page.locator("#point article")).to_contain_text("5 trials")

    panel.get_by_role("link", name="Compare with").click()
    expect(page.locator("main")).to_contain_text("Compare")


#: Record each text that a canvas draws, with its position in CSS pixels from the top.
RECORD_TEXTS = """
  const fillText = CanvasRenderingContext2D.prototype.fillText;
  window.texts = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    window.texts.push([String(text), y]);
    fillText.call(this, text, x, y, ...more);
  };
"""


def test_labels_of_a_chart_do_not_cover_the_data(page: Page, shas: list[str]) -> None:
    page.add_init_script(RECORD_TEXTS)
    _open(page)
    top = page.evaluate(
        "Chart.getChart(document.querySelector('canvas[data-chart=history]')).chartArea.top"
    )
    labels = [y for text, y in page.evaluate("window.texts") if text == "▼ −10.0 % confirmed"]
    assert labels
    # The labels have a height of 15 pixels.
    assert max(labels) + 15 <= top


def test_a_baseline_is_set_from_the_chart(page: Page, shas: list[str]) -> None:
    _open(page, f"&from={shas[38]}&to={shas[42]}&at={shas[40]}")
    panel = page.locator("#point article")
    panel.get_by_text("Set a new baseline here").click()
    panel.get_by_label("Why?").fill("A slower, safer parser")
    panel.get_by_role("button", name="Set new baseline").click()

    expect(page.locator("main")).to_contain_text("New baseline")
    expect(page.locator("#point article")).to_contain_text("A slower, safer parser")
    assert f"at={shas[40]}" in page.url


def test_an_annotation_is_written_at_a_point_and_reached_by_key(
    page: Page, shas: list[str]
) -> None:
    _open(page, f"&from={shas[38]}&to={shas[42]}&at={shas[40]}")
    panel = page.locator("#point article")
    panel.get_by_text("Add an annotation").click()
    panel.get_by_label("Text", exact=True).fill("The new parser")
    panel.get_by_label("Shown on").select_option("benchmark")
    panel.get_by_role("button", name="Add annotation").click()
    expect(page.locator("#point .note")).to_contain_text("The new parser")
    wait_until_drawn(page)

    chart = page.get_by_role("slider")
    chart.focus()
    page.keyboard.press("Home")
    page.keyboard.press("n")
    expect(chart).to_have_attribute("aria-valuenow", "40")
    assert "alice: The new parser" in (chart.get_attribute("aria-valuetext") or "")
    notes = page.get_by_role("region", name="Annotations")
    notes.get_by_text("Edit").click()
    notes.get_by_role("textbox").fill("The safer parser")
    notes.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Annotations")).to_contain_text("The safer parser")
    assert f"at={shas[40]}" in page.url


def test_touch_reads_values_zooms_and_selects(page: Page, shas: list[str]) -> None:
    chart = _open(page)
    box = chart.bounding_box()
    assert box is not None
    client = page.context.new_cdp_session(page)

    def touch(kind: str, *across: float) -> None:
        height = box["y"] + box["height"] / 2
        points = [
            {"x": box["x"] + box["width"] * x, "y": height, "id": number}
            for number, x in enumerate(across)
        ]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.3)
    for x in (0.4, 0.5, 0.6):
        touch("touchMove", x)
    touch("touchEnd")
    expect(page.locator("#pointed-commit")).to_contain_text("Step 3")
    assert _read_scale(page) == (0, COMMITS - 1)

    touch("touchStart", 0.4, 0.6)
    for apart in (0.15, 0.2, 0.3):
        touch("touchMove", 0.5 - apart, 0.5 + apart)
    touch("touchEnd")
    page.wait_for_url("**from=*")
    low, high = _read_scale(page)
    assert 10 < low < 30 < high < 50
    assert page.locator("#point article").count() == 0

    touch("touchStart", 0.5)
    touch("touchEnd")
    expect(page.locator("#point article")).to_contain_text("5 trials")
    assert "at=" in page.url


def test_several_lines_are_distinguishable(page: Page, shas: list[str]) -> None:
    _open(page)
    page.locator("summary", has_text="Requests per second").click()
    page.get_by_label("Latency p99").check()
    page.get_by_role("button", name="Show", exact=True).click()
    wait_until_drawn(page)

    assert page.locator("canvas[data-chart=history]").count() == 2
    assert page.locator(".legend li").count() == 2
    assert "metric=requests.rate&metric=latency.p99" in page.url


def test_the_history_is_complete_without_scripts(
    browser: Browser, shas: list[str], live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    plain = context.new_page()
    give_session(plain, live_server.url)
    plain.goto("/history/")
    expect(plain.locator(".commits-table")).to_contain_text("Step 59")
    plain.get_by_role("link", name="Older").click()
    expect(plain.locator(".commits-table")).to_contain_text("Step 34")
    plain.get_by_role("link", name=shas[34]).click()
    expect(plain.locator("main")).to_contain_text("5 trials")
    context.close()


@pytest.mark.parametrize("width", [1200, 400])
def test_the_history_is_not_wider_than_the_window(page: Page, shas: list[str], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    _open(page, f"&at={shas[40]}")
    expect(page.locator("#point article")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
