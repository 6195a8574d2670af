"""Templates stay readable in an editor, and their line breaks do not show on the page."""

import re
from pathlib import Path

import pytest

from devstack.places import CHECKOUT

FOLDERS = (CHECKOUT / "templates", *sorted(CHECKOUT.glob("orchestrator/*/templates")))
TEMPLATES = [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.is_file()]
WIDTH = 140


each_template = pytest.mark.parametrize(
    "path", TEMPLATES, ids=lambda path: str(path.relative_to(CHECKOUT))
)


@each_template
def test_no_line_of_a_template_is_too_long(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > WIDTH] == []


@each_template
def test_no_line_break_of_the_template_shows_in_a_notice(path: Path) -> None:
    """A notice keeps the line breaks of its message, unless it contains a paragraph."""
    assert re.findall(r'<p class="notice"[^>]*>\n.*', path.read_text()) == []
