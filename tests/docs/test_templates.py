"""Templates stay readable in an editor."""

from pathlib import Path

import pytest

from devstack.places import CHECKOUT

TEMPLATES = CHECKOUT / "templates"
WIDTH = 140


@pytest.mark.parametrize(
    "path", sorted(each for each in TEMPLATES.rglob("*") if each.is_file()),
    ids=lambda path: str(path.relative_to(TEMPLATES)),
)  # fmt: skip
def test_no_line_of_a_template_is_too_long(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > WIDTH] == []
