"""Which messages of the browser fail a test."""

import pytest
from playwright.sync_api import Page

from tests.browser.console import complaints

pytestmark = pytest.mark.browser


def test_a_failed_request_of_htmx_is_one_complaint_with_its_reason(page: Page) -> None:
    # The test would fail for what its first page reports.
    other = page.context.new_page()
    problems = complaints(other)
    other.goto("/hosts/")
    other.route("**/runs/", lambda route: route.abort("connectionrefused"))
    with other.expect_event("requestfailed"):
        other.evaluate("() => { htmx.ajax('GET', '/runs/', {target: 'main'}); }")
    other.goto("/")
    (problem,) = problems
    assert "net::ERR_CONNECTION_REFUSED" in problem
