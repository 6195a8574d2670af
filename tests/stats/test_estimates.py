"""One number of the trials of several runs, and how two such numbers differ."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.estimates import (
    change_against,
    estimate,
    estimate_difference,
    estimate_merged,
)
from orchestrator.stats.rollup import compute_bands, roll_up
from orchestrator.stats.summary import summarise

RUNS = st.lists(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6), min_size=1, max_size=9)


def draw_runs(rng, runs, trials, *, centre=0.0, between=0.02, within=0.01):
    """Trials whose noise has a part that all trials of a run share."""
    levels = rng.normal(centre, between, runs)
    return [np.exp(rng.normal(level, within, trials)).tolist() for level in levels]


@given(RUNS, st.sampled_from(["median", "mean", "min", "max"]))
def test_an_estimate_lies_within_its_trials_and_interval(runs, statistic):
    values = [value for run in runs for value in run]
    result = estimate(runs, statistic)
    assert min(values) * (1 - 1e-9) <= result.value <= max(values) * (1 + 1e-9)
    assert result.n == len(values)
    if result.low is not None:
        assert result.low <= result.value <= result.high


@pytest.mark.parametrize(
    ("runs", "trials", "bounded"), [(1, 5, False), (1, 10, False), (2, 10, False), (3, 5, True),
                                    (5, 5, True), (10, 1, True)]
)  # fmt: skip
def test_an_interval_covers_the_truth_although_runs_differ(runs, trials, bounded):
    """Reports, leaderboards and histories: noise of 2 % between runs, 1 % within them."""
    rng = np.random.default_rng([runs, trials])
    covered = 0
    for _ in range(1_500):
        drawn = draw_runs(rng, runs, trials)
        mean = estimate(drawn, "mean")
        sums = roll_up(
            [value for run in drawn for value in run],
            [number for number, run in enumerate(drawn) for _ in run],
        )
        point = compute_bands([sums.runs], [np.nan], [sums.mean_log], [sums.m2_log])
        assert point.value[0] == pytest.approx(mean.value)
        if not bounded:
            assert mean.low is None
            assert mean.tested is None
            assert np.isnan(point.low[0])
            continue
        assert (point.low[0], point.high[0]) == pytest.approx((mean.low, mean.high))
        covered += mean.low <= 1.0 <= mean.high
    if bounded:
        assert covered >= 0.93 * 1_500


@pytest.mark.parametrize(("runs", "bounded"), [(3, False), (5, False), (6, True), (9, True)])
def test_the_interval_of_a_median_covers_the_true_median(runs, bounded):
    rng = np.random.default_rng(runs)
    covered = 0
    for _ in range(1_500):
        median = estimate(draw_runs(rng, runs, 3), "median")
        assert (median.low is not None) == bounded
        covered += bounded and median.low <= 1.0 <= median.high
    if bounded:
        assert covered >= 0.93 * 1_500


def test_a_mean_counts_each_run_once():
    runs = [[1.0], [1.1], [1.2], [1.05] * 9]
    summary = summarise([1.0, 1.1, 1.2, 1.05])
    mean = estimate(runs, "mean")
    assert (mean.value, mean.low, mean.high) == pytest.approx(
        (summary.mean, summary.low, summary.high)
    )
    assert mean.n == 12
    assert estimate(runs, "median").value == pytest.approx(1.075)


def test_a_median_of_runs_is_bounded_by_medians_of_runs():
    medians = [3.0, 1.0, 2.0, 6.0, 5.0, 4.0]
    median = estimate([[each - 0.5, each, each + 9] for each in medians], "median")
    assert (median.value, median.low, median.high) == (3.5, 1.0, 6.0)


def test_an_estimate_without_enough_runs_has_no_interval():
    assert estimate([], "median") is None
    assert estimate([[]], "mean") is None
    assert estimate([[3.0, 4.0, 5.0, 6.0]], "mean").low is None
    assert estimate([[3.0], [4.0]], "mean").low is None
    three, two = [[2.0], [2.1], [2.2]], [[3.0], [3.1]]
    assert change_against(3.0, two, 2.0, three, are_means=True).low is None
    assert estimate_difference(3.0, two, 2.0, three, are_means=True).low is None
    assert estimate([[0.0], [1.0], [0.5]], "mean").value == 0.5
    assert estimate([[0.0], [1.0], [0.5]], "mean").low is None
    assert estimate([[1.0], [2.0], [3.0]], "max").value == 3.0
    assert estimate([[1.0], [2.0], [3.0]], "max").high is None


def test_a_merged_value_has_no_interval_and_is_ranked_by_its_runs():
    merged = estimate_merged(9.0, [[1.0], [1.01], [1.02]])
    assert (merged.value, merged.low, merged.high) == (9.0, None, None)
    assert math.exp(merged.tested.mean) == pytest.approx(1.01, rel=1e-4)


NEAR = st.lists(st.lists(st.floats(0.1, 10), min_size=1, max_size=3), min_size=1, max_size=5)


@given(NEAR, NEAR)
def test_a_change_and_its_reverse_agree(one, other):
    value, base = estimate(one, "mean").value, estimate(other, "mean").value
    there = change_against(value, one, base, other, are_means=True)
    back = change_against(base, other, value, one, are_means=True)
    assert (1 + there.value) * (1 + back.value) == pytest.approx(1)
    if there.low is not None:
        assert -1 <= there.low <= there.value + 1e-9
        assert there.value <= there.high + 1e-9


@pytest.mark.parametrize("runs", [3, 5])
def test_changes_and_differences_cover_the_truth_although_runs_differ(runs):
    rng = np.random.default_rng(runs)
    changes = differences = 0
    for _ in range(1_000):
        one, other = draw_runs(rng, runs, 5, centre=math.log(1.1)), draw_runs(rng, runs, 5)
        value, base = estimate(one, "mean").value, estimate(other, "mean").value
        change = change_against(value, one, base, other, are_means=True)
        difference = estimate_difference(value, one, base, other, are_means=True)
        changes += change.low <= 0.1 <= change.high
        differences += difference.low <= 0.1 <= difference.high
    assert min(changes, differences) >= 0.93 * 1_000


def test_a_change_of_other_statistics_has_no_interval():
    one, other = [[2.0], [2.2], [2.1]], [[1.0], [1.1], [1.2]]
    change = change_against(2.1, one, 1.1, other, are_means=False)
    difference = estimate_difference(2.1, one, 1.1, other, are_means=False)
    for each in (change, difference):
        assert (each.low, each.high) == (None, None)
        assert each.tested is not None


def test_a_change_without_a_baseline_is_unknown():
    assert change_against(1.0, [[1.0]], 0.0, [[0.0]], are_means=True) is None
    assert change_against(2.0, [[2.0]], 1.0, [[1.0]], are_means=True).low is None


def test_a_difference_is_symmetric_about_its_value():
    one, other = [[4.0], [5.0], [6.0]], [[1.0], [2.0], [3.0]]
    difference = estimate_difference(5.0, one, 2.0, other, are_means=True)
    assert difference.value == 3.0
    assert difference.high - difference.value == pytest.approx(difference.value - difference.low)
    same = estimate_difference(5.0, [[5.0]] * 3, 2.0, [[2.0]] * 3, are_means=True)
    assert (same.low, same.high) == (3.0, 3.0)


def test_bounds_of_values_of_all_sizes_are_finite() -> None:
    """A host may report any number; a report must not fail because of it."""
    up, down = [[1e-300], [1.0], [1e300]], [[1e300], [1.0], [1e-300]]
    alone = estimate(up, "mean")
    change = change_against(1.0, up, 1.0, down, are_means=True)
    for each in (alone, change):
        assert each is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.value < each.high < math.inf
