"""Every screen, once: accessible in both looks, as wide as a phone, quiet, light, on its own.

With PITWALL_TEST_PICTURES=FOLDER (`make screenshots`) it leaves pictures of them all there.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Response

from tests.browser import page_checks
from tests.browser.conftest import give_session
from tests.browser.console import concerns_page
from tests.browser.screens import EMPTY, Screen, list_screens
from tests.browser.screenshots import picture_screen, wait_until_drawn
from tests.support.demo_team import make_demo_team
from tests.support.factories import make_personas

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 780}
WIDE = {"width": 1200, "height": 900}
#: What people print: without what only moves about on a screen.
PRINTED = ("run", "compare", "report")
PICTURES = os.environ.get("PITWALL_TEST_PICTURES")


class Visitor:
    """A page that goes from screen to screen and writes down what is wrong with each."""

    def __init__(self, page: Page, host: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self._host = host
        self._screen = Screen(name="login", path="/")
        self._responses: list[Response] = []
        page.on("pageerror", lambda error: self._fault(str(error)))
        page.on("console", self._hear)
        page.on("response", self._check_response)

    def visit(self, screen: Screen) -> None:
        self._screen, page = screen, self.page
        self._responses.clear()
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        answer = page.goto(screen.path)
        if answer is None or answer.status != screen.status:
            self._fault(f"answers {answer and answer.status}, not {screen.status}")
        wait_until_drawn(page)
        self._judge()
        if PICTURES:
            picture_screen(page, screen.name, Path(PICTURES))

    def _judge(self) -> None:
        page = self.page
        weight = page_checks.sum_bytes(self._responses)
        if weight > page_checks.MOST_BYTES:
            self._fault(f"{weight} bytes")
        for fault in (*page_checks.too_wide(page), *page_checks.violations(page)):
            self._fault(fault)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        for fault in page_checks.violations(page, only=page_checks.OF_COLOURS):
            self._fault(f"dark: {fault}")
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        for fault in page_checks.too_wide(page):
            self._fault(fault)
        if self._screen.name in PRINTED:
            self._judge_print()

    def _judge_print(self) -> None:
        page = self.page
        page.emulate_media(media="print", color_scheme="light")
        for fault in page_checks.not_for_paper(page):
            self._fault(f"printed: {fault}")
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{self._screen.name}-print.png", full_page=True)
        page.emulate_media(media="screen")

    def _hear(self, line: Any) -> None:
        # The browser itself reports a missing page.
        if line.type not in ("error", "warning") or "status of 4" in line.text:
            return
        if concerns_page(line):
            self._fault(line.text)

    def _check_response(self, response: Response) -> None:
        self._responses.append(response)
        if urlsplit(response.url).netloc not in (self._host, ""):
            self._fault(f"asked {response.url}")

    def _fault(self, text: str) -> None:
        self.faults.append(f"{self._screen.name} ({self._screen.path}): {text}")


@pytest.fixture
def visitor(
    browser: Browser, transactional_db: None, live_server: Any, data_dir: Path
) -> Iterator[Visitor]:
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    yield Visitor(context.new_page(), urlsplit(live_server.url).netloc)
    context.close()


def test_every_screen_is_accessible_and_fits(
    visitor: Visitor, live_server: Any, tmp_path: Path
) -> None:
    demo_team = make_demo_team(tmp_path)
    visitor.visit(Screen(name="login", path="/login"))
    give_session(visitor.page, live_server.url)
    for screen in list_screens(demo_team):
        visitor.visit(screen)
    assert "\n".join(visitor.faults) == ""


def test_every_screen_of_a_new_team_is_accessible_and_fits(
    visitor: Visitor, live_server: Any
) -> None:
    make_personas()
    give_session(visitor.page, live_server.url, "mallory")
    for screen in EMPTY:
        visitor.visit(screen)
    assert "\n".join(visitor.faults) == ""
