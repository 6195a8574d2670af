"""A host may report any placement: only a valid one is kept with the trial."""

from typing import Any

import pytest

from agents.hostagent.platform.placement import Placement
from orchestrator.measurements.placements import build_placement_provenance

PLACEMENT = {**Placement({"server": (1,), "tool": None}, system=(0,)).as_json(), "agent": [0]}


def test_the_placement_of_each_host_is_kept() -> None:
    value = {"a": PLACEMENT, "b": {**PLACEMENT, "agent": None}}
    assert build_placement_provenance(value) == {"placement": value}


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        {"a": {}},
        {"a": {**PLACEMENT, "cpus": {"server": ["one"]}}},
        {"a": {**PLACEMENT, "siblings": list(range(5000))}},
        {"a": {**PLACEMENT, "problem": "x" * 5000}},
        dict.fromkeys("abcd", PLACEMENT),
    ],
)
def test_another_report_of_a_host_is_left_out(value: Any) -> None:
    assert build_placement_provenance(value) == {}
