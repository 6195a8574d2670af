"""The pages in a real browser: nothing is refused by the policy, nothing is cut off."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from orchestrator.runs.models import Job, Run
from tests.browser.conftest import give_session
from tests.browser.screenshots import wait_until_drawn
from tests.support.factories import finish_run, make_run
from tests.support.world import World

pytestmark = pytest.mark.browser


def _compare_path(world: World) -> str:
    return f"/compare/?benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"


def _colours(page: Page, selector: str) -> int:
    """How many different colours a canvas shows."""
    return page.eval_on_selector(
        selector,
        """(canvas) => {
            const pen = canvas.getContext("2d");
            const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
    )


def test_a_run_is_previewed_while_filled_in_and_started(page: Page, world: World) -> None:
    page.goto("/runs/new")
    page.get_by_label("Baseline").fill(world.shas[0][:10])
    page.get_by_label("Contender", exact=True).fill("no-such-branch")
    page.get_by_label("here").check()
    error = page.locator("#id_contender_error")
    # The name is looked up in a fetch, some seconds after the one before.
    expect(error).to_contain_text(
        "There is no commit, branch or tag no-such-branch", timeout=20_000
    )

    page.get_by_label("Contender", exact=True).fill("main")
    expect(page.locator("#plan")).to_contain_text("Estimated time")
    expect(page.locator("datalist#refs option[value=main]")).to_have_count(1)
    expect(page.locator("#plan dt:has(a:text-is('Trials')) + dd")).to_have_text("10")
    expect(error).to_be_empty()

    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("heading", name="Hello run")).to_be_visible()
    expect(page.locator("#live")).to_contain_text("0 of 10 trials")


def test_a_run_page_updates_until_the_run_ends(page: Page, world: World) -> None:
    run = make_run(world.personas.alice, world.shas[:2])
    Job.objects.filter(run=run).update(state="measuring", phase="warming up")
    Run.objects.filter(pk=run.pk).update(state="running")
    page.goto(f"/runs/{run.pk}/")
    live = page.locator("#live")
    expect(live).to_contain_text("warming up")

    with page.expect_response(lambda answer: answer.status == 304):
        pass
    Job.objects.filter(run=run).update(phase="measuring the third")
    expect(live).to_contain_text("measuring the third")

    Job.objects.filter(run=run).update(state="failed", message="oha is missing; install it")
    Run.objects.filter(pk=run.pk).update(state="failed", message="oha is missing; install it")
    expect(live).to_contain_text("oha is missing; install it")
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    expect(live).not_to_have_attribute("hx-trigger", "every 1500ms")


def test_exact_times_are_shown_without_a_mouse(page: Page, world: World) -> None:
    page.goto("/runs/")
    exact = page.locator("main time").first.get_attribute("title")
    assert exact
    assert exact not in page.locator("main").aria_snapshot()
    button = page.get_by_role("button", name="Exact times")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.reload()
    assert exact in page.locator("main").aria_snapshot()
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    page.reload()
    assert exact not in page.locator("main").aria_snapshot()


def test_a_run_is_cancelled(page: Page, world: World) -> None:
    run = make_run(world.personas.alice, world.shas[:2])
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("button", name="Cancel run").click()

    expect(page.locator("#progress-title")).to_contain_text("cancelled")


def test_the_latency_of_both_commits_is_drawn(page: Page, world: World) -> None:
    page.goto(f"/runs/{world.run.pk}/")
    page.get_by_role("link", name="Open the comparison").last.click()
    expect(page.locator(".headline")).to_contain_text("is a regression")
    expect(page.locator("canvas[data-chart=latency]")).to_be_visible()
    wait_until_drawn(page)
    page.wait_for_timeout(100)

    assert _colours(page, "canvas[data-chart=latency]") > 10


def test_the_history_is_drawn_and_links_to_the_comparison(page: Page, world: World) -> None:
    page.goto("/history/?benchmark=server/hello")
    wait_until_drawn(page)
    page.wait_for_timeout(100)
    assert _colours(page, "canvas[data-chart=history]") > 10

    page.get_by_role("link", name="Compare", exact=True).last.click()
    expect(page.locator(".headline")).to_be_visible()


def test_charts_are_drawn_again_when_the_colour_scheme_changes(page: Page, world: World) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(_compare_path(world))
    wait_until_drawn(page)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert light != dark


def test_the_skip_link_comes_first(page: Page) -> None:
    page.goto("/runs/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def _tab_to(page: Page, wanted: Locator) -> None:
    """As somebody without a mouse gets there; every stop on the way is one that can be seen."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if wanted.evaluate("(node) => node === document.activeElement"):
            expect(wanted).to_be_in_viewport()
            return
    raise AssertionError(f"the keyboard does not get to {wanted}")


def test_two_commits_are_measured_and_compared_by_keyboard(page: Page, world: World) -> None:
    page.goto("/")
    _tab_to(page, page.get_by_role("link", name="New run").first)
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_label("Contender", exact=True))
    page.keyboard.type("main")
    _tab_to(page, page.get_by_label("Baseline"))
    page.keyboard.type(world.shas[0][:10])
    expect(page.get_by_label("here")).to_be_checked()
    expect(page.locator("#plan")).to_contain_text("Estimated time")
    _tab_to(page, page.get_by_role("button", name="Start run"))
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text("0 of 10 trials")

    finish_run(Run.objects.get(state="queued"), [1000, 850])
    comparison = page.get_by_role("link", name="Open the comparison")
    expect(comparison).to_be_visible()
    _tab_to(page, comparison)
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("is a regression")


def test_two_commits_are_measured_and_compared_on_a_phone_without_scripts(
    browser: Browser, world: World, live_server: Any
) -> None:
    context = browser.new_context(
        base_url=live_server.url,
        java_script_enabled=False,
        has_touch=True,
        viewport={"width": 360, "height": 740},
    )
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto("/")
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.get_by_role("button", name="Menu").tap()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").tap()
    page.get_by_role("link", name="New run").tap()
    page.get_by_label("Baseline").fill(world.shas[0])
    page.get_by_label("Contender", exact=True).fill("main")
    page.get_by_label("here").check()
    page.get_by_role("button", name="Preview").tap()
    expect(page.locator("#plan")).to_contain_text("Estimated time")
    page.get_by_role("button", name="Start run").tap()
    # Without scripts the page that waits for the fetch has a button to go on.
    waiting, live = page.get_by_role("heading", name="Fetching repository"), page.locator("#live")
    for _ in range(20):
        expect(waiting.or_(live)).to_be_visible()
        if live.is_visible():
            break
        page.wait_for_timeout(500)
        page.get_by_role("button", name="Continue").tap()
    expect(page.locator("#live")).to_contain_text("0 of 10 trials")

    finish_run(Run.objects.get(state="queued"), [1000, 850])
    page.reload()
    page.get_by_role("link", name="Open the comparison").tap()
    expect(page.locator(".headline")).to_contain_text("is a regression")
    context.close()
