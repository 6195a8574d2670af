import math

import pytest

from orchestrator.stats.summary import is_supported, summarise


@pytest.mark.parametrize(
    ("percentile", "n", "supported"),
    [
        (50, 19, False),
        (50, 20, True),
        (99, 999, False),
        (99, 1_000, True),
        (99.9, 9_999, False),
        (99.9, 10_000, True),
        (99.99, 100_000, True),
        (100, 10**9, False),
        (0, 10, True),
    ],
)
def test_a_percentile_needs_ten_requests_beyond_it(percentile, n, supported):
    assert is_supported(percentile, n) is supported


def test_trials_are_averaged_on_the_log_scale():
    stats = summarise([100.0, None, 400.0])
    assert (stats.n, stats.minimum, stats.maximum) == (2, 100, 400)
    assert stats.mean == pytest.approx(200)
    assert stats.spread == pytest.approx(math.log(4) / math.sqrt(2))
    assert stats.low * stats.high == pytest.approx(200**2)
    assert stats.low < 200 < stats.high


def test_one_trial_has_no_spread():
    stats = summarise([5.0])
    assert (stats.mean, stats.low, stats.high, stats.spread) == (pytest.approx(5), None, None, None)


@pytest.mark.parametrize("values", [[], [None], [0.0, 1.0], [-1.0]])
def test_values_without_a_logarithm_have_no_summary(values):
    assert summarise(values) is None


def test_invalid_numbers_are_refused():
    with pytest.raises(ValueError, match="not a number"):
        summarise([1.0, math.nan])
