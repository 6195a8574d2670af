"""One number of several trials, and how two such numbers differ."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.estimates import (
    change_against,
    estimate,
    estimate_around,
    estimate_difference,
)
from orchestrator.stats.summary import summarise

VALUES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12)


@given(VALUES, st.sampled_from(["median", "mean", "min", "max"]))
def test_an_estimate_lies_within_its_trials_and_interval(values, statistic):
    result = estimate(values, statistic)
    assert min(values) * (1 - 1e-9) <= result.value <= max(values) * (1 + 1e-9)
    assert result.n == len(values)
    if result.low is not None:
        assert result.low <= result.value <= result.high


def test_an_estimate_has_the_interval_of_the_logs():
    values = [1.0, 1.1, 1.2, 1.05]
    summary = summarise(values)
    mean, median = estimate(values, "mean"), estimate(values, "median")
    assert (mean.value, mean.low, mean.high) == (summary.mean, summary.low, summary.high)
    assert median.value == pytest.approx(1.075)
    assert (median.low, median.high) == (summary.low, summary.high)


def test_an_estimate_without_enough_trials_has_no_interval():
    assert estimate([], "median") is None
    assert estimate([3.0], "mean").low is None
    assert estimate([3.0, 4.0], "mean").low is None
    assert change_against(3.0, [3.0, 3.1], 2.0, [2.0, 2.1, 2.2]).low is None
    assert estimate_difference(3.0, [3.0, 3.1], 2.0, [2.0, 2.1, 2.2]).low is None
    assert estimate([0.0, 1.0], "mean").value == 0.5
    assert estimate([0.0, 1.0], "mean").low is None
    assert estimate([1.0, 2.0], "max").value == 2.0
    assert estimate([1.0, 2.0], "max").high is None


def test_the_interval_is_widened_to_contain_a_merged_value():
    assert estimate_around(9.0, [1.0, 1.01, 1.02]).high == 9.0


NEAR = st.lists(st.floats(0.1, 10), min_size=1, max_size=12)


@given(NEAR, NEAR)
def test_a_change_and_its_reverse_agree(one, other):
    there = change_against(one[0], one, other[0], other)
    back = change_against(other[0], other, one[0], one)
    assert (1 + there.value) * (1 + back.value) == pytest.approx(1)
    if there.low is not None:
        assert -1 <= there.low <= there.value <= there.high


def test_a_change_has_welchs_interval():
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        one, other = np.exp(rng.normal(0.1, 0.05, 5)), np.exp(rng.normal(0, 0.02, 7))
        change = change_against(
            math.exp(np.log(one).mean()), one.tolist(), math.exp(np.log(other).mean()),
            other.tolist(),
        )  # fmt: skip
        inside += change.low <= math.expm1(0.1) <= change.high
    assert inside >= 0.92 * 400


def test_a_change_without_a_baseline_is_unknown():
    assert change_against(1.0, [1.0], 0.0, [0.0]) is None
    assert change_against(2.0, [2.0], 1.0, [1.0]).low is None


def test_a_difference_is_symmetric_about_its_value():
    difference = estimate_difference(5.0, [4.0, 5.0, 6.0], 2.0, [1.0, 2.0, 3.0])
    assert difference.value == 3.0
    assert difference.high - difference.value == pytest.approx(difference.value - difference.low)
    same = estimate_difference(5.0, [5.0, 5.0, 5.0], 2.0, [2.0, 2.0, 2.0])
    assert (same.low, same.high) == (3.0, 3.0)
    assert estimate_difference(5.0, [5.0], 2.0, [2.0]).low is None
