"""docs/load-tools.md is what the sheets of the load tools say."""

from pathlib import Path

from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sheets import build_tool_sheets, render_document

PAGE = Path(__file__).parents[2] / "docs/load-tools.md"


def test_the_committed_page_matches_the_descriptions() -> None:
    assert PAGE.read_text() == render_document(), "run: manage.py loadtools > docs/load-tools.md"


def test_every_load_tool_has_a_description() -> None:
    assert [sheet.name for sheet in build_tool_sheets()] == list(TOOLS)
    assert all(sheet.caveats for sheet in build_tool_sheets())


def test_metrics_that_a_tool_does_not_report_are_unknown() -> None:
    for sheet in build_tool_sheets():
        lines = dict(sheet.lines)
        known = {"yes": "yes", "no": "no: unknown, never 0", "partly": "in part"}
        assert lines["Reports bytes sent"] == known[TOOLS[sheet.name].sheet.bytes_out]
        assert lines["Reports all errors"] == known[TOOLS[sheet.name].sheet.errors]
