"""The content security policy, and that the pages keep it."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tests.support.world import World

#: The page of a report's bundle is a file, so it contains its style.
FILES = {"bundle.html"}
TEMPLATES = sorted(
    each
    for each in (Path(settings.BASE_DIR) / "templates").rglob("*.html")
    if each.name not in FILES
)


def _directives(policy: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in policy.split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("path", ["/login", "/nowhere", "/static/nothing.css"])
def test_every_response_has_a_strict_content_security_policy(
    path: str, db: None, client: Client
) -> None:
    policy = _directives(client.get(path).headers["Content-Security-Policy"])

    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_pages_have_no_inline_script_style_or_handler(template: Path) -> None:
    text = template.read_text()

    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)


def test_htmx_adds_no_inline_style(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new")).content.decode()

    assert '"includeIndicatorCSS": false' in page
