"""docs/load-tools.md is what the sheets of the load tools say."""

from pathlib import Path

from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sheets import document, tool_sheets

PAGE = Path(__file__).parents[2] / "docs/load-tools.md"


def test_it_is_committed_as_the_sheets_are() -> None:
    assert PAGE.read_text() == document(), "run: manage.py loadtools > docs/load-tools.md"


def test_there_is_a_sheet_of_every_tool() -> None:
    assert [sheet.name for sheet in tool_sheets()] == list(TOOLS)
    assert all(sheet.caveats for sheet in tool_sheets())


def test_what_a_tool_does_not_tell_is_unknown() -> None:
    for sheet in tool_sheets():
        told = dict(sheet.lines)
        known = {"yes": "yes", "no": "no: unknown, never 0", "partly": "in part"}
        assert told["Reports bytes sent"] == known[TOOLS[sheet.name].sheet.bytes_out]
        assert told["Reports all errors"] == known[TOOLS[sheet.name].sheet.errors]
