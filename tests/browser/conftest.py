"""A real Chromium, and a signed-in page of it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect, sync_playwright

from orchestrator.accounts.models import User
from tests.browser.chromium import ARGUMENTS, find_chromium
from tests.browser.console import complaints
from tests.support.factories import PASSWORD
from tests.support.programs import missing
from tests.support.world import World

# A busy machine takes long for a page; what comes sooner is not waited for.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium() or missing("chromium")
    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def world(browser: Browser, transactional_db: None, world: World) -> World:
    """With a run of all three commits, the last one slower."""
    world.run = world.measure_run(1000, 1001, 850, rounds=6)
    return world


@pytest.fixture
def page(browser: Browser, world: World, live_server: Any) -> Iterator[Page]:
    """A page of alice; the test fails if the browser reported an error, such as a broken policy."""
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    page = context.new_page()
    problems = complaints(page)
    give_session(page, live_server.url)
    yield page
    context.close()
    assert problems == []


def give_session(page: Page, url: str, name: str = "alice") -> None:
    """Log the browser in at the live server `url` without its form, which takes two pages."""
    client = Client()
    client.force_login(User.objects.get(username=name))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])


def log_in(page: Page, name: str = "alice") -> None:
    """Log in with the form, until the overview is shown."""
    page.goto("/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Overview").wait_for()
