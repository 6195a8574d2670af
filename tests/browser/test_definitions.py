"""Writing a definition and choosing cases, in a real browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.benchmarks.models import Definition
from tests.browser import page_checks
from tests.browser.conftest import give_session
from tests.runs.test_choosing_cases import MATRIX
from tests.support.factories import DEFINITION, make_definition
from tests.support.world import World

pytestmark = pytest.mark.browser

HELLO = "/benchmarks/server/hello/"


def test_a_definition_is_reviewed_while_it_is_written(page: Page, world: World) -> None:
    page.goto(HELLO)
    review = page.locator("#review")
    text = page.get_by_label("Definition (YAML)")
    expect(review).to_contain_text("Valid.")

    text.fill(DEFINITION.replace("duration_s: 0.6", "duration_s: soon"))
    expect(review).to_contain_text("Line 9")
    expect(review).to_contain_text("load.duration_s")
    expect(review).to_contain_text("Expected a valid number")
    expect(page.locator(".line-numbers [data-wrong]")).to_have_text("▶ 9\n")

    page.get_by_role("button", name="Go to line 9").click()
    expect(text).to_be_focused()
    chosen = text.evaluate("(it) => it.value.slice(it.selectionStart, it.selectionEnd)")
    assert chosen == "  duration_s: soon"

    text.fill(DEFINITION.replace("[4]", "[4, 8, 16]"))
    expect(review).to_contain_text("Valid.")
    expect(page.locator("#review dt:has(a:text-is('Cases')) + dd")).to_contain_text("3")
    expect(page.locator(".line-numbers [data-wrong]")).to_have_count(0)


def test_a_saved_version_shows_its_changes(page: Page, world: World) -> None:
    page.goto(HELLO)
    page.get_by_label("Definition (YAML)").fill(DEFINITION.replace("[4]", "[4, 8]"))
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("v2")

    page.get_by_role("link", name="changes").click()
    rows = page.locator("table.diff tr[data-sign='+'], table.diff tr[data-sign='-']")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("−")
    expect(page.locator("main")).to_contain_text(
        "1 case added, 0 removed; 1 case keeps its history"
    )

    page.goto(f"{HELLO}?version=1")
    expect(page.locator("main")).to_contain_text("Saving here creates version 3")


def test_cases_are_selected_while_typing(page: Page, world: World) -> None:
    project = world.run.definition.benchmark.project
    make_definition(world.personas.alice, project, slug="many", source=MATRIX)
    page.goto("/runs/new?benchmark=server/many")
    page.get_by_label("Baseline").fill("main")
    page.get_by_label("Contender", exact=True).fill("")
    page.get_by_label("here").check()
    plan = page.locator("#plan")
    expect(plan).to_contain_text("without a comparison")
    expect(page.locator("#plan dt:has(a:text-is('Cases')) + dd")).to_have_text("12")

    page.locator("#plan summary").click()
    page.get_by_text("More options").click()
    page.get_by_text("Filter cases").click()
    field = page.get_by_label("Expression", exact=True)
    field.fill('language == "rust" and connections > 1')
    expect(page.locator("#plan dt:has(a:text-is('Cases')) + dd")).to_have_text("4 of 12")
    expect(plan.get_by_text("system quick, connections 3, size l")).to_be_visible()

    field.fill("speed > 1")
    expect(page.locator("#id_cases_error")).to_contain_text("There is no axis or label speed")
    field.fill('system == "old"')
    expect(plan).to_contain_text("unsupported: nobody has it any more")

    page.get_by_label("Fewer cases").check()
    field.fill("connections < 3")
    expect(page.locator("#plan dt:has(a:text-is('Cases')) + dd")).to_have_text("8 of 12")
    page.get_by_role("button", name="Start run").click()
    expect(page.locator("main")).to_contain_text("cases where connections < 3")
    expect(page.locator("main")).to_contain_text("measured alone, no comparison")


def test_a_definition_starts_from_a_suite_of_the_catalogue(page: Page, world: World) -> None:
    page.goto("/benchmarks/")
    page.get_by_role("link", name="Catalogue", exact=True).click()
    page.get_by_role("link", name="Known latency").click()
    page.get_by_role("link", name="Use as a template").click()
    expect(page.get_by_label("Short name")).to_have_value("known-latency")
    page.get_by_role("button", name="Save the benchmark").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("server/known-latency v1")


def test_a_definition_starts_from_an_example(page: Page, world: World) -> None:
    page.goto("/benchmarks/new?project=server")
    page.get_by_label("Start from an example").select_option("gRPC")
    page.get_by_role("button", name="Use this example").click()
    expect(page.locator("main")).to_contain_text("names what to change for your repository")
    expect(page.get_by_label("Start from an example")).to_have_value("grpc")
    expect(page.get_by_label("Project")).to_have_value("server")
    expect(page.locator("#review")).to_contain_text("Valid.")
    assert [*page_checks.too_wide(page), *page_checks.violations(page)] == []

    text = page.get_by_label("Definition (YAML)")
    changed = text.input_value().replace("server.py", "greeter.py").replace("[1, 16]", "[1, 4, 16]")
    text.fill(changed)
    expect(page.locator("#review dt:has(a:text-is('Cases')) + dd")).to_have_text("3")
    page.get_by_label("Short name").fill("greeter")
    page.get_by_role("button", name="Save the benchmark").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("gRPC server/greeter v1")
    saved = Definition.objects.get(benchmark__slug="greeter")
    assert saved.spec["subject"]["start"][1] == "greeter.py"
    assert saved.source == changed


def test_an_example_is_used_without_scripts(
    browser: Browser, world: World, live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto("/benchmarks/new")
    page.get_by_label("Start from an example").select_option("Rust workspace")
    page.get_by_role("button", name="Use this example").click()
    expect(page.get_by_label("Definition (YAML)")).to_have_value(
        re.compile("# For a server in a Cargo workspace")
    )
    page.get_by_label("Short name").fill("api")
    page.get_by_role("button", name="Save the benchmark").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Rust workspace server/api v1")
    context.close()


def test_a_definition_is_checked_without_scripts(
    browser: Browser, world: World, live_server: Any
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    give_session(page, live_server.url)
    page.goto(HELLO)
    page.get_by_label("Definition (YAML)").fill(DEFINITION.replace("rounds: 5", "rouns: 5"))
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#review")).to_contain_text("Line 13")
    expect(page.locator("#review")).to_contain_text("Unknown field rouns; did you mean rounds?")
    expect(page.get_by_role("heading", level=1)).to_contain_text("v1")
    context.close()


def test_definition_pages_fit_a_narrow_screen(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    for path in (HELLO, f"{HELLO}diff", "/catalogue/", "/catalogue/hello-redis/",
                 "/projects/server/import", "/benchmarks/new?suite=hello",
                 "/benchmarks/new?example=grpc"):  # fmt: skip
        page.goto(path)
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{path} is {wider} pixels too wide"
