"""The last line of a benchmark says what was measured, what was wanted, and whether it was met."""

import pytest

from perf.harness.report import Wanted, verdict


@pytest.mark.parametrize(
    ("relation", "limit", "value", "met"),
    [
        (">", 5, 5.1, True),
        (">", 5, 5, False),
        ("<=", 1.05, 1.05, True),
        ("<=", 1.05, 1.06, False),
    ],
)
def test_it_is_met_where_the_figure_is_on_the_right_side(relation, limit, value, met):
    answer = verdict("x", {"a": value}, {"a": Wanted(relation=relation, limit=limit)})
    assert answer["met"] is met
    assert answer["wanted"] == {"a": f"{relation} {limit}"}


def test_it_takes_no_account_of_a_figure_that_is_only_reported():
    wanted = {"a": None, "b": Wanted(relation="<=", limit=1)}
    answer = verdict("x", {"a": 100, "b": 0.5}, wanted)
    assert answer["met"] is True
    assert answer["wanted"] == {"a": None, "b": "<= 1"}


def test_it_refuses_a_figure_that_nobody_asked_for():
    with pytest.raises(ValueError, match="differ"):
        verdict("x", {"a": 1, "b": 2}, {"a": None})
