"""A maintainer generates a deploy key in a real browser and copies its public half."""

import re

import pytest
from playwright.sync_api import Page, expect

from orchestrator.benchmarks.models import Project, RepositoryAccess
from orchestrator.transport.keys import generate_key
from tests.browser import looking
from tests.browser.conftest import World

pytestmark = pytest.mark.browser


def test_a_deploy_key_is_generated_and_its_public_half_is_shown(page: Page, world: World) -> None:
    Project.objects.update(repository_url="git@github.com:ada/server.git")
    page.goto("/projects/server/")
    page.get_by_role("link", name="Repository access").click()
    page.get_by_role("button", name="Generate a deploy key").click()
    key = page.get_by_label("Public key")
    expect(key).to_have_value(re.compile(r"^ssh-ed25519 AAAA"))
    assert key.input_value() == RepositoryAccess.objects.get().public_key
    page.get_by_role("button", name="Copy").click()
    expect(page.locator(".stack [role=status]")).to_have_text(re.compile("Copied|copy it"))


def test_its_page_is_accessible_and_fits_a_phone(page: Page, world: World) -> None:
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
        assert looking.violations(page) == []
        assert looking.too_wide(page) == []
