"""The noise of a machine from its A/A pairs."""

import numpy as np
import pytest

from orchestrator.stats.noise import FEWEST_PAIRS, estimate_noise

#: Ten differences with sd 0.02 and mean 0, by construction.
EVEN = [0.02 * value for value in (-1, 1) * 5]


def test_the_standard_deviation_has_its_chi_square_interval() -> None:
    found = estimate_noise(EVEN)
    assert found is not None
    assert found.pairs == 10
    assert found.sigma == pytest.approx(0.02 * (10 / 9) ** 0.5)
    # Quantiles of chi-square with 9 degrees, from a printed table: 19.023 and 2.700.
    assert found.low == pytest.approx(found.sigma * (9 / 19.023) ** 0.5, rel=1e-4)
    assert found.high == pytest.approx(found.sigma * (9 / 2.700) ** 0.5, rel=1e-4)


def test_the_mean_has_its_t_interval() -> None:
    found = estimate_noise([value + 0.005 for value in EVEN])
    assert found is not None
    assert found.mean == pytest.approx(0.005)
    # t of 9 degrees from a printed table: 2.262.
    reach = 2.262 * found.sigma / 10**0.5
    assert (found.mean_low, found.mean_high) == pytest.approx((0.005 - reach, 0.005 + reach), 1e-3)
    assert not found.drifts


@pytest.mark.parametrize(("shift", "drifts"), [(0.0, False), (0.03, True), (-0.03, True)])
def test_there_is_drift_if_zero_is_outside_of_the_interval(shift: float, drifts: bool) -> None:
    found = estimate_noise([value + shift for value in EVEN])
    assert found is not None
    assert found.drifts is drifts


def test_equal_pairs_have_no_noise_and_do_not_drift() -> None:
    found = estimate_noise([0.0] * 6)
    assert found is not None
    assert (found.sigma, found.low, found.high, found.drifts) == (0, 0, 0, False)


def test_too_few_pairs_have_no_estimate() -> None:
    assert estimate_noise(EVEN[: FEWEST_PAIRS - 1]) is None
    assert estimate_noise([]) is None


def test_intervals_cover_the_truth_as_often_as_stated() -> None:
    chance = np.random.default_rng(8)
    rounds = 2000
    sigma_held = mean_held = 0
    for differences in chance.normal(0, 0.03, size=(rounds, 10)):
        found = estimate_noise(differences.tolist())
        assert found is not None
        sigma_held += found.low <= 0.03 <= found.high
        mean_held += not found.drifts
    # Three standard errors of a share of 95 % around it.
    assert abs(sigma_held / rounds - 0.95) < 0.015
    assert abs(mean_held / rounds - 0.95) < 0.015
