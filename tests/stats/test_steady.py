"""Where the warm-up ends, on series whose answer is known and on simulated ones."""

import math

import numpy as np
import pytest
from scipy.stats import linregress

from orchestrator.stats.steady import Steady, compute_drift, compute_mser5

TOO_SHORT = Steady(reason="too short")
NO_STEADY_STATE = Steady(reason="no steady state")


def noisy(rng, shape, noise=0.03):
    return (shape * np.exp(rng.normal(0, noise, len(shape)))).tolist()


@pytest.mark.parametrize(
    ("name", "series", "found"),
    [
        ("nothing", [], TOO_SHORT),
        ("two batches", [5] * 5 + [1] * 9, TOO_SHORT),
        ("flat", [0.1] * 40, Steady(cut=0)),
        ("flat, three batches", [0.1] * 15, Steady(cut=0)),
        ("flat, large", [123_456.7] * 41, Steady(cut=0)),
        ("nothing but zeros", [0.0] * 20, Steady(cut=0)),
        ("ramp, then flat", [*range(10), *[10] * 30], Steady(cut=10)),
        ("ramp of 8 s, cut after whole batches", [*range(8), *[8] * 32], Steady(cut=10)),
        ("slows after 5 s", [100] * 5 + [60] * 25, Steady(cut=5)),
        ("slows after 5 s, short", [100] * 5 + [60] * 10, Steady(cut=5)),
        ("one slow second at first", [1, *[100] * 29], Steady(cut=5)),
        ("sawtooth of 5 s", [0, 1, 2, 3, 4] * 8, Steady(cut=0)),
        ("ramp all along", list(range(40)), NO_STEADY_STATE),
        ("fall all along", list(range(40, 0, -1)), NO_STEADY_STATE),
        ("settles late", [*range(30), *[30] * 10], NO_STEADY_STATE),
        ("settles after half of it", [*range(20), *[20] * 20], NO_STEADY_STATE),
        ("ramp all along, too short to deny", list(range(25)), Steady(cut=10)),
    ],
)
def test_the_end_of_the_warm_up_is_found(name, series, found):
    assert compute_mser5(series) == found


def test_values_after_the_last_full_batch_are_ignored():
    assert compute_mser5([100] * 5 + [60] * 25 + [9_999] * 4) == Steady(cut=5)


def test_steady_state_does_not_depend_on_the_unit():
    rng = np.random.default_rng(80_000)
    series = noisy(rng, 1 - 0.4 * np.exp(-np.arange(40) / 4))
    assert compute_mser5(series) == compute_mser5([1e6 * value for value in series])


def test_steady_state_follows_the_formula():
    """Against the sums written out, over many series: the least of them, within its reach."""
    rng = np.random.default_rng(80_001)
    for _ in range(200):
        series = noisy(rng, np.full(60, 50.0))
        batches = [sum(series[at : at + 5]) / 5 for at in range(0, 60, 5)]
        errors = {}
        for cut in range(8):
            rest = batches[cut:]
            mean = sum(rest) / len(rest)
            errors[cut] = sum((one - mean) ** 2 for one in rest) / len(rest) ** 2
        best = min(errors, key=errors.__getitem__)
        assert compute_mser5(series) == (NO_STEADY_STATE if best >= 6 else Steady(cut=5 * best))


def test_truncation_removes_most_of_the_warm_up_bias():
    rng = np.random.default_rng(80_002)
    shape = 1 - 0.4 * np.exp(-np.arange(60) / 4)
    whole, rest = [], []
    for _ in range(300):
        series = noisy(rng, shape)
        cut = compute_mser5(series).cut
        if cut is not None:
            whole.append(np.mean(series) - 1)
            rest.append(np.mean(series[cut:]) - 1)
    assert np.mean(whole) < -0.025
    assert abs(np.mean(rest)) < 0.004


@pytest.mark.parametrize(("slices", "most"), [(30, 0.27), (40, 0.20), (50, 0.15), (200, 0.12)])
def test_false_denials_of_steady_state_are_as_rare_as_stated(slices, most):
    rng = np.random.default_rng(80_003)
    results = [compute_mser5(noisy(rng, np.ones(slices))) for _ in range(1_000)]
    assert np.mean([one == NO_STEADY_STATE for one in results]) <= most


def test_a_server_that_slows_down_is_mostly_not_steady():
    rng = np.random.default_rng(80_004)
    shape = 1 - 0.3 * np.arange(60) / 60
    results = [compute_mser5(noisy(rng, shape)) for _ in range(300)]
    assert np.mean([one == NO_STEADY_STATE for one in results]) >= 0.8


@pytest.mark.parametrize(
    ("series", "change"),
    [
        ([10] * 30, 0.0),
        ([10] * 5 + [8] * 25, 8 / 9 - 1),
        ([100] * 10 + [90] * 10 + [80] * 10, -0.2),
        ([100] * 10 + [120] * 20, 0.2),
        ([10, 10, 1_000] * 10, 0.0),
        (list(range(1, 10)), 3.0),
    ],
)
def test_the_last_third_is_compared_with_the_first(series, change):
    drift = compute_drift(series)
    assert drift is not None
    assert drift.share == pytest.approx(change)


@pytest.mark.parametrize(
    "series",
    [
        [3, 1, 4, 1, 5, 9, 2, 6, 5],
        [576, 511, 416, 410, 385, 377, 367, 386, 373],
        # Three times the value from the middle on, and a little noise against the trend.
        [22, 22, 21, 21, 20, 62, 62, 61, 61, 60],
    ],
)
def test_a_trend_has_the_p_value_of_a_linear_regression(series):
    drift = compute_drift(series)
    assert drift is not None
    expected = linregress(range(len(series)), series).pvalue
    assert drift.p_value == pytest.approx(expected)


def test_a_series_without_noise_has_a_certain_trend_or_none():
    rising, level = compute_drift(list(range(1, 10))), compute_drift([7] * 9)
    assert rising is not None
    assert level is not None
    assert rising.p_value == pytest.approx(0.0, abs=1e-12)
    assert level.p_value == 1.0


def test_a_step_in_the_middle_is_a_trend_whatever_the_noise():
    noise = np.random.default_rng(2).lognormal(sigma=0.1, size=(1_000, 10))
    drifts = [compute_drift(series * ([1] * 5 + [3] * 5)) for series in noise]
    assert all(drift is not None and drift.p_value < 0.05 for drift in drifts)


def test_noise_has_a_trend_as_often_as_alpha_says():
    noise = np.random.default_rng(1).lognormal(sigma=0.1, size=(4_000, 12))
    drifts = [compute_drift(series) for series in noise]
    share = sum(drift is not None and drift.p_value < 0.05 for drift in drifts) / len(drifts)
    assert 0.03 < share < 0.06


@pytest.mark.parametrize("series", [[], [1] * 8, [0] * 10 + [5] * 20, [-1] * 30])
def test_too_few_values_have_no_change(series):
    assert compute_drift(series) is None


@pytest.mark.parametrize("look", [compute_mser5, compute_drift])
def test_invalid_numbers_are_refused(look):
    with pytest.raises(ValueError, match="not a number"):
        look([1.0] * 29 + [math.nan])
