"""A maintainer generates a deploy key in a real browser and copies its public half."""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Fetch, Project, RepositoryAccess
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.transport.keys import generate_key
from tests.browser import page_checks
from tests.support.fetches import PATIENCE_S
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_a_deploy_key_is_generated_and_its_public_half_is_shown(page: Page, world: World) -> None:
    Project.objects.update(repository_url="git@github.com:ada/server.git")
    page.goto("/projects/server/")
    page.get_by_role("link", name="Repository access").click()
    page.get_by_role("button", name="Generate a deploy key").click()
    key = page.get_by_role("textbox", name="Public key")
    expect(key).to_have_value(re.compile(r"^ssh-ed25519 AAAA"))
    assert key.input_value() == RepositoryAccess.objects.get().public_key
    page.get_by_role("button", name="Copy").click()
    expect(page.locator(".stack [role=status]")).to_have_text(re.compile("Copied|copy it"))


def test_an_offered_host_key_is_declined_and_the_pinned_one_forgotten(
    page: Page, world: World
) -> None:
    # Nothing is reached there: the fetch that each button requests fails.
    Project.objects.update(repository_url="ssh://git@127.0.0.1:9/server.git")
    pinned, offered = (generate_key() for _ in range(2))
    row = RepositoryAccess.objects.create(
        project=Project.objects.get(slug="server"),
        host_key=pinned.public_openssh,
        offered_host_key=offered.public_openssh,
    )
    page.goto("/projects/server/access")
    page.get_by_role("button", name="Keep the pinned key").click()
    expect(page.get_by_text("The pinned host key stays")).to_be_visible()
    expect(page.get_by_text(offered.fingerprint)).to_have_count(0)
    page.get_by_role("link", name="Forget the pinned key").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget key").click()
    expect(page.get_by_text("No key is pinned")).to_be_visible()
    row.refresh_from_db()
    assert row.was_host_key_forgotten
    RepositoryAccess.objects.update(offered_host_key=offered.public_openssh)
    page.reload()
    expect(page.get_by_role("button", name="Keep the pinned key")).to_have_count(0)
    page.get_by_role("button", name="Accept the new host key").click()
    expect(page.get_by_text("The new host key is pinned")).to_be_visible()
    give_up = time.monotonic() + PATIENCE_S
    while Fetch.objects.get().state != "failed":
        assert time.monotonic() < give_up
        time.sleep(0.05)
    page.reload()
    page.get_by_role("button", name="Try again").click()
    expect(page).to_have_url(re.compile("/projects/server/$"))


def test_the_repository_page_is_accessible_and_fits_a_phone(page: Page, world: World) -> None:
    keys = [generate_key().public_openssh for _ in range(3)]
    RepositoryAccess.objects.create(
        project=Project.objects.get(slug="server"),
        public_key=keys[0],
        sealed_private_key=b"-",
        host_key=keys[1],
        offered_host_key=keys[2],
    )
    page.set_viewport_size({"width": 360, "height": 780})
    for address in ("git@github.com:ada/server.git", "https://github.com/ada/server.git"):
        Project.objects.update(repository_url=address)
        page.goto("/projects/server/access")
        assert page_checks.violations(page) == []
        assert page_checks.too_wide(page) == []


def test_a_maintainer_has_the_repository_cloned_again(page: Page, world: World) -> None:
    mirror = get_mirror_path(Project.objects.get())
    mark = mirror / "of-the-former-mirror"
    mark.touch()
    page.goto("/projects/server/")
    page.get_by_role("link", name="Clone again").click()
    page.get_by_role("dialog").get_by_role("button", name="Clone again").click()
    give_up = time.monotonic() + PATIENCE_S
    while mark.exists() or Fetch.objects.get().clone:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    assert mirror.is_dir()
    page.reload()
    expect(page.locator("#fetch")).to_contain_text("Up to date")
