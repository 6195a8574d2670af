"""docs/load-tools.md is what the sheets of the load tools say."""

import json
from pathlib import Path

import pytest

from orchestrator.loadtools.model import PercentileErrors
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sheets import build_tool_sheets, render_document

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs/load-tools.md"
MEASURED = json.loads((CHECKOUT / "perf/results/fidelity.json").read_text())["measured"]


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


@pytest.mark.parametrize("tool", ["oha", "wrk", "h2load", "k6", "ghz"])
def test_sheets_state_the_errors_that_the_kept_benchmark_measured(tool: str) -> None:
    assert TOOLS[tool].sheet.percentile_errors == PercentileErrors(
        p50=find_errors(tool, "p50"),
        p99=find_errors(tool, "p99"),
        p99_9=find_errors(tool, "p99.9"),
        p99_with_pauses=round_percent(MEASURED[f"known_{tool}_pauses_p99_error"]),
    )


def find_errors(tool: str, percentile: str) -> tuple[float, float]:
    errors = [
        MEASURED[f"known_{tool}_{delays}_{percentile}_error"]
        for delays in ("constant", "uniform", "bimodal")
    ]
    return round_percent(min(errors)), round_percent(max(errors))


def round_percent(share: float) -> float:
    """The percentage, with two digits."""
    return float(f"{100 * share:.2g}")
