"""docs/validity.md is the table of thresholds.py."""

import re
from pathlib import Path

from orchestrator.loadtools.model import Level
from orchestrator.loadtools.thresholds import THRESHOLDS, Threshold
from orchestrator.stats.block_outcomes import Outcome

PAGE = (Path(__file__).parents[2] / "docs/validity.md").read_text()
KINDS = {Level.INVALID: "hard", Level.SUSPECT: "soft"}


def describe_kind(rule: Threshold) -> str:
    kind = KINDS[rule.level]
    return kind if rule.outcome is Outcome.VOID else f"{kind}, {rule.outcome}"


def test_the_page_lists_every_threshold_and_no_other() -> None:
    rows = re.findall(r"^\| (.+) \| `(\w+)` \| ([\w, ]+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (rule.title, rule.code, describe_kind(rule), rule.text or "–", rule.reason)
        for rule in THRESHOLDS.values()
    ]
