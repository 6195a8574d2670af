"""The last line of a benchmark says what was measured, what was wanted, and whether it was met."""

import pytest

from perf.harness.report import Requirement, judge_requirements


@pytest.mark.parametrize(
    ("relation", "limit", "value", "met"),
    [
        (">", 5, 5.1, True),
        (">", 5, 5, False),
        ("<=", 1.05, 1.05, True),
        ("<=", 1.05, 1.06, False),
    ],
)
def test_a_target_is_met_on_the_right_side_of_its_limit(relation, limit, value, met):
    answer = judge_requirements(
        "x", {"a": value}, {"a": Requirement(relation=relation, limit=limit)}
    )
    assert answer["met"] is met
    assert answer["wanted"] == {"a": f"{relation} {limit}"}


def test_a_value_without_a_target_does_not_count():
    wanted = {"a": None, "b": Requirement(relation="<=", limit=1)}
    answer = judge_requirements("x", {"a": 100, "b": 0.5}, wanted)
    assert answer["met"] is True
    assert answer["wanted"] == {"a": None, "b": "<= 1"}


def test_an_unknown_value_is_refused():
    with pytest.raises(ValueError, match="differ"):
        judge_requirements("x", {"a": 1, "b": 2}, {"a": None})
