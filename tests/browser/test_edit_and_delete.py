"""A maintainer edits, deletes and restores a project, a benchmark and a profile in a browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Benchmark, Case, Project
from orchestrator.fleet.models import HardwareProfile
from tests.browser import page_checks
from tests.support.factories import DEFINITION, make_definition
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_a_project_is_renamed_deleted_and_restored(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto("/projects/server/")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Name").fill("File server")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="File server")).to_be_visible()

    page.get_by_role("link", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete the project “File server”?")
    expect(dialog).to_contain_text("Benchmarks")
    assert page_checks.violations(page) == []
    assert page_checks.too_wide(page) == []
    dialog.get_by_role("button", name="Delete project").click()
    expect(page.get_by_role("heading", name="Deleted", exact=True)).to_be_visible()
    assert not Project.objects.exists()
    assert page_checks.violations(page) == []
    assert page_checks.too_wide(page) == []
    page.goto("/benchmarks/")
    expect(page.get_by_text("No projects yet")).to_be_visible()

    page.goto("/settings/deleted/")
    page.get_by_role("button", name="Restore File server").click()
    expect(page).to_have_url(re.compile("/projects/server/$"))
    assert Project.objects.get().benchmarks.count() == 1


def test_a_benchmark_is_deleted_and_restored(page: Page, world: World) -> None:
    page.goto("/benchmarks/server/hello/")
    page.get_by_role("link", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete the benchmark")
    expect(dialog).to_contain_text("Points of histories")
    dialog.get_by_role("button", name="Delete benchmark").click()
    expect(page.get_by_text("was deleted.")).to_be_visible()
    assert not Benchmark.objects.exists()
    page.get_by_role("button", name=re.compile("^Restore ")).click()
    expect(page).to_have_url(re.compile("/benchmarks/server/hello/$"))
    assert Benchmark.objects.exists()


def test_a_former_case_is_hidden_and_shown(page: Page, world: World) -> None:
    source = DEFINITION.replace("connections: [4]", "connections: [8]")
    make_definition(world.alice, world.project, source=source)
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto("/benchmarks/server/hello/")
    page.get_by_role("button", name="Hide connections 4").click()
    expect(page.get_by_text("The case “connections 4” is hidden.")).to_be_visible()
    assert page_checks.violations(page) == []
    assert page_checks.too_wide(page) == []
    page.get_by_role("button", name="Show connections 4").click()
    expect(page.get_by_role("button", name="Hide connections 4")).to_be_visible()
    assert Case.objects.get().hidden_at is None


def test_a_profile_is_added_edited_and_deleted(page: Page, world: World) -> None:
    page.goto("/profiles/")
    page.get_by_label("Short name").fill("spare")
    page.get_by_label("Name", exact=True).fill("Spare")
    page.get_by_role("button", name="Save the profile").click()
    page.get_by_role("link", name="Edit Spare").click()
    expect(page.get_by_label("Short name")).to_be_disabled()
    page.get_by_label("Name", exact=True).fill("Spare machine")
    page.get_by_role("button", name="Save the profile").click()
    assert HardwareProfile.objects.get(slug="spare").name == "Spare machine"
    expect(page.get_by_role("link", name="Delete Any machine")).to_have_count(0)
    page.get_by_role("link", name="Delete Spare machine").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete profile").click()
    expect(page.get_by_text("The profile “Spare machine” was deleted.")).to_be_visible()
    assert not HardwareProfile.objects.filter(slug="spare").exists()
