"""A comparison as a table for a terminal."""

from typing import Any

import pytest

from cli.pitwall.tables import render_comparison


def a_report(primary: bool, full: Any) -> dict[str, Any]:
    metric = {
        "title": "Latency p99", "unit": "s", "primary": primary, "baseline": 0.01,
        "contender": 0.011, "change": 0.147, "likely_change": None, "interval": [0.1, 0.19],
        "verdict": "regressed",
        "with_saturated": full,
    }  # fmt: skip
    case = {"case": {"label": "4"}, "host": "ant", "verdict": "regressed", "metrics": [metric]}
    return {"summary": "It is a regression.", "cases": [case]}


@pytest.mark.parametrize(
    ("bound", "blocks", "text"),
    [
        ("at_least", 3, "With 3 saturated blocks: 4 Latency p99 at least +20 % (+17 % to +23 %)"),
        ("at_most", 1, "With 1 saturated block: 4 Latency p99 at most +20 % (+17 % to +23 %)"),
        ("unknown", 2, "With 2 saturated blocks: 4 Latency p99 +20 % (+17 % to +23 %)"),
    ],
)
def test_the_change_with_saturated_blocks_is_a_line(bound: str, blocks: int, text: str) -> None:
    full = {"change": 0.2, "interval": [0.17, 0.23], "bound": bound, "blocks": blocks}
    shown = render_comparison(a_report(True, full))
    assert text in shown.replace("20.0", "20").replace("17.0", "17").replace("23.0", "23")


@pytest.mark.parametrize("primary", [True, False])
def test_without_saturated_blocks_there_is_no_such_line(primary: bool) -> None:
    full = {"change": 0.2, "interval": [0.17, 0.23], "bound": "unknown", "blocks": 2}
    assert "saturated" not in render_comparison(a_report(primary, None if primary else full))
