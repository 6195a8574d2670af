"""Precise points of a history count more than others."""

import numpy as np
import pytest

from orchestrator.stats.changes import find_changes
from orchestrator.stats.precision import compute_weights, estimate_errors
from perf.detection.precision import find_in_history

WHOLE = [(0, 200)]


def test_equal_points_have_equal_weights() -> None:
    level = np.random.default_rng(1).normal(0, 0.01, 200)
    assert (compute_weights(level, np.full(200, 0.01), WHOLE, 0.005) == 1).all()
    assert (compute_weights(level, np.full(200, np.nan), WHOLE, 0.005) == 1).all()


def test_weights_are_one_over_the_variance() -> None:
    rng = np.random.default_rng(2)
    within = np.where(np.arange(200) % 2 == 0, 0.01, 0.03)
    level = rng.normal(0, np.hypot(within, 0.02))
    weights = compute_weights(level, within, WHOLE, 0.005)
    assert weights.mean() == pytest.approx(1)
    assert weights[0] / weights[1] == pytest.approx((0.02**2 + 0.03**2) / (0.02**2 + 0.01**2), 0.3)


def test_noise_between_points_is_never_taken_for_nothing() -> None:
    """Otherwise one point of 300 trials would be as good as 60 points of 5."""
    within = np.full(200, 0.01)
    within[50] = 0.0001
    weights = compute_weights(np.zeros(200), within, WHOLE, 0.005)
    assert weights[50] / weights[0] == pytest.approx((0.005**2 + 0.01**2) / 0.005**2, 0.01)


def test_errors_are_moderated_and_have_a_calibrated_minimum() -> None:
    errors = estimate_errors([5, 5, 20, 1], [0.0004, 0.0, 0.0019, None])
    known = [error for error in errors if error is not None]
    assert len(known) == 4
    assert known[1] > 0.002, "five equal trials are not exact"
    assert known[2] == pytest.approx(0.01 / 20**0.5, rel=0.2)
    assert known[3] > known[0]
    calibrated = estimate_errors([4, 4], [0.0001, 0.0001], least=0.04)
    assert calibrated == pytest.approx([0.02, 0.02])
    assert estimate_errors([1, 1], [None, 0.0]) == [None, None]


def test_a_shift_of_imprecise_points_is_not_certain() -> None:
    """Four points of three noisy trials are no level; with a hundred trials each they are."""
    rng = np.random.default_rng(4)
    values = [*(100 * np.exp(rng.normal(0, 0.004, 40))).tolist(), 105.0, 106.5, 104.0, 105.5]
    precise = find_changes(values, errors=[0.003] * 44)
    imprecise = find_changes(values, errors=[*[0.003] * 40, *[0.04] * 4])
    assert [each.index for each in precise.points] == [40]
    assert [each for each in imprecise.points if each.kind == "alert"] == []


@pytest.mark.parametrize("kind", ["noisier", "few or many"])
def test_points_of_unequal_precision_raise_hardly_any_alert(kind: str) -> None:
    """`make bench-detection` measures this with more histories."""
    rng = np.random.default_rng(6)
    found = [find_in_history(rng, kind) for _ in range(80)]
    assert sum("alert" in kinds for kinds in found) <= 1
    assert sum(bool(kinds) for kinds in found) <= 5
