"""docs/validity.md is the table of thresholds.py."""

import re
from pathlib import Path

from orchestrator.loadtools.model import Level
from orchestrator.loadtools.thresholds import THRESHOLDS

PAGE = (Path(__file__).parents[2] / "docs/validity.md").read_text()
KINDS = {Level.INVALID: "hard", Level.SUSPECT: "soft"}


def test_the_page_lists_every_threshold_and_no_other() -> None:
    rows = re.findall(r"^\| (.+) \| `(\w+)` \| (\w+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (rule.title, rule.code, KINDS[rule.level], rule.text or "–", rule.reason)
        for rule in THRESHOLDS.values()
    ]
