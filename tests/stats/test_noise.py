"""The noise of a machine from its A/A pairs."""

import numpy as np
import pytest

from orchestrator.stats.noise import FEWEST_PAIRS, estimate_noise

#: Ten differences with sd 0.02 and mean 0, by construction.
EVEN = [0.02 * value for value in (-1, 1) * 5]


def test_the_standard_deviation_has_its_chi_square_interval() -> None:
    noise = estimate_noise(EVEN)
    assert noise is not None
    assert noise.pairs == 10
    assert noise.sigma == pytest.approx(0.02 * (10 / 9) ** 0.5)
    # Quantiles of chi-square with 9 degrees, from a printed table: 19.023 and 2.700.
    assert noise.low == pytest.approx(noise.sigma * (9 / 19.023) ** 0.5, rel=1e-4)
    assert noise.high == pytest.approx(noise.sigma * (9 / 2.700) ** 0.5, rel=1e-4)


def test_the_mean_has_its_t_interval() -> None:
    noise = estimate_noise([value + 0.005 for value in EVEN])
    assert noise is not None
    assert noise.mean == pytest.approx(0.005)
    # t of 9 degrees from a printed table: 2.262.
    reach = 2.262 * noise.sigma / 10**0.5
    assert (noise.mean_low, noise.mean_high) == pytest.approx((0.005 - reach, 0.005 + reach), 1e-3)
    assert not noise.drifts


@pytest.mark.parametrize(("shift", "drifts"), [(0.0, False), (0.03, True), (-0.03, True)])
def test_there_is_drift_if_zero_is_outside_of_the_interval(shift: float, drifts: bool) -> None:
    noise = estimate_noise([value + shift for value in EVEN])
    assert noise is not None
    assert noise.drifts is drifts


def test_equal_pairs_have_no_noise_and_do_not_drift() -> None:
    noise = estimate_noise([0.0] * 6)
    assert noise is not None
    assert (noise.sigma, noise.low, noise.high, noise.drifts) == (0, 0, 0, False)


def test_too_few_pairs_have_no_estimate() -> None:
    assert estimate_noise(EVEN[: FEWEST_PAIRS - 1]) is None
    assert estimate_noise([]) is None


def test_intervals_cover_the_truth_as_often_as_stated() -> None:
    chance = np.random.default_rng(8)
    rounds = 2000
    sigma_held = mean_held = 0
    for differences in chance.normal(0, 0.03, size=(rounds, 10)):
        noise = estimate_noise(differences.tolist())
        assert noise is not None
        sigma_held += noise.low <= 0.03 <= noise.high
        mean_held += not noise.drifts
    # Three standard errors of a share of 95 % around it.
    assert abs(sigma_held / rounds - 0.95) < 0.015
    assert abs(mean_held / rounds - 0.95) < 0.015
