"""Change points of a series: where they are, how large, how sure; and which way is worse."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.changes import find_changes


def series(*levels, noise=0.01, seed=1):
    """Values about each (level, length), with noise as a share."""
    rng = np.random.default_rng(seed)
    flat = np.concatenate([np.full(length, float(level)) for level, length in levels])
    return (flat * np.exp(rng.normal(0, noise, flat.size))).tolist()


def places(values, **options):
    return [change.index for change in find_changes(values, **options).points]


def test_the_position_and_size_of_a_step_are_found():
    (change,) = find_changes(series((100, 40), (110, 40))).points
    assert change.index == 40
    assert change.kind == "alert"
    assert change.low < 0.10 < change.high
    assert change.change == pytest.approx(0.10, abs=0.01)
    assert change.before == pytest.approx(100, rel=0.01)
    assert change.after == pytest.approx(110, rel=0.01)


def test_several_steps_of_different_size_are_found():
    values = series((100, 40), (120, 30), (90, 50), (95, 40))
    assert places(values) == [40, 70, 120]


def test_the_p_value_is_close_to_that_of_a_t_test():
    values = series((100, 30), (104, 30), noise=0.015, seed=3)
    (change,) = find_changes(values).points
    logs = np.log(values)
    beside = stats.ttest_ind(logs[: change.index], logs[change.index :]).pvalue
    assert math.log10(change.p_value) == pytest.approx(math.log10(beside), abs=1.5)


def test_a_spike_is_an_outlier_and_no_change():
    values = series((100, 60))
    values[30] = 160.0
    changes = find_changes(values)
    assert changes.points == ()
    assert 30 in changes.outliers


def test_two_neighbouring_spikes_are_outliers():
    values = series((100, 60))
    values[30] = values[31] = 160.0
    changes = find_changes(values)
    assert changes.points == ()
    assert {30, 31} <= set(changes.outliers)


def test_three_values_of_a_new_level_at_the_end_are_a_change():
    values = series((100, 60), (110, 3))
    assert places(values) == [60]


def test_two_values_of_a_new_level_at_the_end_are_not_a_change():
    assert places(series((100, 60), (110, 2))) == []


def test_one_deviating_value_at_the_end_is_an_outlier():
    changes = find_changes(series((100, 60), (140, 1)))
    assert changes.points == ()
    assert 60 in changes.outliers


@pytest.mark.parametrize(
    ("lower_is_better", "after", "regressed"),
    [(True, 120, True), (True, 80, False), (False, 120, False), (False, 80, True)],
)
def test_the_direction_of_worse_is_a_parameter(lower_is_better, after, regressed):
    (change,) = find_changes(series((100, 30), (after, 30)), lower_is_better=lower_is_better).points
    assert change.regressed is regressed
    assert (change.change > 0) is (after > 100)


def test_gaps_are_skipped_and_keep_positions():
    values = series((100, 40), (110, 40))
    values[5], values[39], values[40], values[60] = None, math.nan, math.inf, -math.inf
    assert places(values) == [41]


def test_no_segment_spans_a_break():
    values = series((100, 40), (110, 40))
    assert places(values, breaks=[40]) == []
    assert places(values, breaks=[20]) == [40]


def test_a_step_next_to_a_break_is_found():
    values = series((100, 40), (110, 40), (150, 40))
    assert places(values, breaks=[80]) == [40]


@pytest.mark.parametrize("breaks", [(0,), (80,), (-3, 500), (1, 2, 3, 79)])
def test_breaks_at_the_ends_or_beyond_change_nothing(breaks):
    assert places(series((100, 40), (110, 40)), breaks=breaks) == [40]


def test_changes_below_the_minimum_are_omitted():
    values = series((100, 60), (101.5, 60), noise=0.002)
    assert places(values) == [60]
    assert places(values, least=0.02) == []


def test_the_noise_has_a_lower_bound():
    values = [100.0] * 5 + [102.0] * 5
    assert places(values) == [5]
    assert places(values, floor=0.05) == []
    assert find_changes(values, floor=0.05).noise >= 0.05


def test_a_drift_is_not_a_change():
    rng = np.random.default_rng(4)
    for _ in range(20):
        log = rng.normal(0, 0.02, 200) + np.linspace(0, 0.04, 200)
        assert places((100 * np.exp(log)).tolist()) == []


def test_a_step_on_a_drift_is_found():
    rng = np.random.default_rng(4)
    log = rng.normal(0, 0.01, 200) + np.linspace(0, 0.04, 200)
    log[120:] += 0.08
    (change,) = find_changes((100 * np.exp(log)).tolist()).points
    assert abs(change.index - 120) <= 1
    assert change.change == pytest.approx(math.expm1(0.08), abs=0.015)


def test_a_series_that_returns_three_times_is_unstable_and_raises_no_alert():
    changes = find_changes(series(*[(100, 15), (120, 15)] * 4))
    assert changes.unstable
    assert len(changes.points) == 7
    assert {change.kind for change in changes.points} == {"candidate"}


def test_more_than_one_change_in_twenty_points_is_unstable():
    values = series((100, 8), (120, 8), (150, 8), (190, 8))
    assert find_changes(values).unstable


def test_a_temporary_step_is_stable():
    changes = find_changes(series((100, 60), (120, 10), (100, 60)))
    assert [change.index for change in changes.points] == [60, 70]
    assert not changes.unstable


def test_changes_of_quantised_values_are_found():
    values = [10, 10, 11, 10, 10, 10, 11, 10, 10, 10] * 4 + [14, 14, 14, 15, 14] * 4
    assert places(values) == [40]


def test_bimodal_values_are_noise():
    rng = np.random.default_rng(5)
    for _ in range(10):
        values = np.where(rng.random(120) < 0.3, 96.0, 100.0) + rng.normal(0, 0.3, 120)
        assert places(values.tolist()) == []


def test_correlated_noise_is_not_a_change():
    rng = np.random.default_rng(6)
    false_alerts = 0
    for _ in range(50):
        noise = np.zeros(200)
        for at in range(1, 200):
            noise[at] = 0.5 * noise[at - 1] + rng.normal(0, 0.02)
        false_alerts += any(
            change.kind == "alert" for change in find_changes((100 * np.exp(noise)).tolist()).points
        )
    assert false_alerts <= 2
