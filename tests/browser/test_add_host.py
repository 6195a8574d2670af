"""Adding a host in a real browser, against a real SSH server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from orchestrator.transport.address import HostKey
from tests.support.sshd import SshServer, start_sshd

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with start_sshd(tmp_path) as running:
        yield running


def test_it_adds_a_host_and_pins_the_key_that_was_looked_at(page: Page, server: SshServer) -> None:
    page.goto("/hosts/")
    page.get_by_role("link", name="Add a host").click()
    page.get_by_label("Name").fill("rack-1")
    page.get_by_label("Address").fill(server.host)
    page.get_by_label("Port").fill(str(server.port))
    page.get_by_label("User", exact=True).fill(server.user)
    expect(page.get_by_label("Private key", exact=True)).to_be_hidden()
    page.get_by_label("Paste a private key").check()
    page.get_by_label("Private key", exact=True).fill(server.client_private_key)
    page.get_by_role("button", name="Connect and show its key").click()

    expect(page.get_by_role("heading", name="Is this your host?")).to_be_visible()
    fingerprint = HostKey.parse(server.host_key).fingerprint_sha256
    expect(page.locator(".fingerprint")).to_have_text(fingerprint)
    page.get_by_role("button", name="This is my host: pin this key").click()

    expect(page.get_by_role("heading", name="rack-1")).to_be_visible()
    expect(page.locator(".badge[data-state=ready]")).to_be_visible()
