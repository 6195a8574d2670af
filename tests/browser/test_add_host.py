"""Adding a host in a real browser, against a real SSH server."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.transport.address import HostKey
from tests.browser import page_checks
from tests.support.engine import Engine, running_engine
from tests.support.ssh_certificates import sign
from tests.support.sshd import SshServer, start_sshd

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with start_sshd(tmp_path) as running:
        yield running


@pytest.fixture
def engine(transactional_db: None, tmp_path: Path) -> Iterator[Engine]:
    """Its worker carries the checks out."""
    with running_engine(tmp_path / "engine") as running:
        yield running


def test_a_host_is_added_step_by_step_and_a_failed_step_is_fixed(
    page: Page, server: SshServer, engine: Engine
) -> None:
    page.goto("/hosts/")
    page.get_by_role("link", name="Add a host").click()
    page.get_by_label("Name").fill("rack-1")
    page.get_by_label("Address").fill(server.host)
    page.get_by_label("Port").fill(str(server.port))
    page.get_by_label("User", exact=True).fill("nobody-here")
    expect(page.get_by_label("Private key", exact=True)).to_be_hidden()
    page.get_by_label("Paste a private key").check()
    page.get_by_label("Private key", exact=True).fill(server.client_private_key)
    page.get_by_label("Work directory").fill(str(server.work_dir))
    page.get_by_role("button", name="Add and check").click()

    # Nobody presses anything: the steps go on by themselves until one of them asks.
    fingerprint = HostKey.parse(server.host_key).fingerprint_sha256
    expect(page.locator(".fingerprint")).to_have_text(fingerprint, timeout=60_000)
    page.get_by_role("button", name="This is my host: pin this key").click()
    expect(page.get_by_text("refused to log in")).to_be_visible(timeout=30_000)
    # The commands arrived after the page.
    page.get_by_role("button", name="Copy the command").first.click()
    expect(page.get_by_text("Copied.").first).to_be_visible()
    if folder := os.environ.get("PITWALL_LOOK"):
        take_screenshots(page, Path(folder), "failed")
    assert Host.objects.get(name="rack-1").state == "unconfirmed"

    page.get_by_text("SSH settings", exact=True).click()
    page.get_by_label("User", exact=True).fill(server.user)
    page.get_by_role("button", name="Save and check again").click()
    expect(page.get_by_text("rack-1 is ready")).to_be_visible(timeout=60_000)
    expect(page.locator(".checks li[data-outcome=failed]")).to_have_count(0)
    if folder:
        take_screenshots(page, Path(folder), "ready")

    page.get_by_text("SSH certificate", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_label("Certificate").fill(sign(server.client_public_key, server.user))
    page.get_by_role("button", name="Save certificate").click()
    page.get_by_text("SSH certificate", exact=True).click()
    expect(page.get_by_text(f"Now: for {server.user}, valid from")).to_be_visible()


def test_a_generated_key_is_installed_before_any_check_fails(
    page: Page, server: SshServer, engine: Engine
) -> None:
    """From no profile and no key to a host that is ready, with a profile that the user renames."""
    HardwareProfile.objects.filter(hosts=None).delete()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/hosts/new")
    page.get_by_label("Name").fill("rack-1")
    page.get_by_label("Address").fill(server.host)
    page.get_by_label("Port").fill(str(server.port))
    page.get_by_label("User", exact=True).fill(server.user)
    page.get_by_label("Work directory").fill(str(server.work_dir))
    page.get_by_role("button", name="Add and check").click()

    card = page.get_by_role("region", name="Install the key on the host")
    card.get_by_role("button", name="Copy the command").click()
    expect(card.get_by_role("status")).to_have_text("Copied.")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == card.locator("pre").inner_text()
    expect(page.locator(".fingerprint")).to_be_visible(timeout=60_000)
    # The steps around the button were loaded again since.
    expect(card.get_by_role("status")).to_have_text("Copied.")
    expect(page.locator(".checks li[data-outcome=failed]")).to_have_count(0)
    page.get_by_role("button", name="This is my host: pin this key").click()
    waiting = page.locator(".checks li[data-outcome=action_required]")
    expect(waiting).to_contain_text("waiting for you", timeout=30_000)
    assert page_checks.violations(page) == []
    if folder := os.environ.get("PITWALL_LOOK"):
        take_screenshots(page, Path(folder), "waiting")

    (line,) = re.findall(r"echo '(.+?)'", command)
    server.authorize(line)
    waiting.get_by_role("button", name="The key is installed: check again").click()
    expect(page.get_by_text("rack-1 is ready")).to_be_visible(timeout=60_000)
    host = Host.objects.get(name="rack-1")
    assert not host.profile.is_pending
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("Name", exact=True).fill("Test rack")
    page.get_by_role("button", name="Save the profile").click()
    expect(page.get_by_role("rowheader", name="Test rack")).to_be_visible()
    host.refresh_from_db()
    assert host.profile.name == "Test rack"
    assert host.profile.memory_bytes

    page.goto(f"/hosts/{host.pk}/")
    page.get_by_text("Host setup", exact=True).click()
    page.get_by_role("button", name="Copy the script").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download pitwall-host-setup.sh").click()
    script = download.value.path().read_text()
    assert copied.strip() == script.strip()
    assert line.rpartition(" ")[0] in script
    assert page_checks.violations(page) == []


def take_screenshots(page: Page, folder: Path, name: str) -> None:
    for scheme, width in (("light", 1200), ("dark", 390)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    page.set_viewport_size({"width": 1200, "height": 900})
