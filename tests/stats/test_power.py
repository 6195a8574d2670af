"""Which change so many blocks can see, against a published table, scipy and the test itself."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.order_effect import compute_block_means
from orchestrator.stats.paired import compute_paired_test
from orchestrator.stats.power import (
    compute_block_sigma,
    compute_needed_blocks,
    compute_smallest_change,
)


@pytest.mark.parametrize(
    ("noise", "blocks"), [(0.01, 3), (0.02, 5), (0.03, 9), (0.05, 19), (0.10, 68)]
)
def test_five_percent_needs_the_blocks_of_the_table(noise, blocks):
    assert compute_needed_blocks(compute_block_sigma(noise), 0.05) == blocks


@pytest.mark.parametrize("blocks", [2, 3, 5, 7, 20, 200])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.015, 0.9), (0.001, 0.99)])
def test_power_agrees_with_the_noncentral_t_distribution_of_scipy(blocks, alpha, power):
    change = compute_smallest_change(0.03, blocks, alpha=alpha, power=power)

    distance = math.log1p(change) / 0.03 * math.sqrt(blocks)
    critical = stats.t.ppf(1 - alpha / 2, blocks - 1)
    above = stats.nct.sf(critical, blocks - 1, distance)
    assert above == pytest.approx(power, abs=1e-4)


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.06])
@pytest.mark.parametrize("blocks", [3, 5, 10, 50])
def test_the_smallest_change_and_the_number_of_blocks_are_inverse(sigma, blocks):
    change = compute_smallest_change(sigma, blocks)

    assert compute_needed_blocks(sigma, change * 1.0001) == blocks
    assert compute_needed_blocks(sigma, change * 0.9999) == blocks + 1


def test_the_smallest_change_is_found_four_times_in_five():
    rng = np.random.default_rng(50_000)
    sigma, blocks = 0.04, 8
    effect = math.log1p(compute_smallest_change(sigma, blocks))

    drawn = rng.normal(effect, sigma, (4_000, blocks))
    unknown = np.zeros((1, blocks), dtype=np.int64)
    tests = [
        compute_paired_test(compute_block_means(one[None], unknown), margin=0.03, confidence=0.95)
        for one in drawn
    ]
    hits = [test.p_value < 0.05 for test in tests]

    assert np.mean(hits) == pytest.approx(0.8, abs=0.02)


def test_a_fall_needs_as_many_blocks_as_the_inverse_rise():
    assert compute_needed_blocks(0.04, 1 / 1.05 - 1) == compute_needed_blocks(0.04, 0.05) == 8


def test_a_change_that_needs_more_blocks_than_a_run_has_no_number():
    assert compute_needed_blocks(0.174, 0.05) is None
    assert compute_needed_blocks(0.172, 0.05) == 100


def test_without_noise_every_change_is_detectable():
    assert compute_smallest_change(0.0, 5) == 0.0
    assert compute_needed_blocks(0.0, 1e-6) == 2


def test_the_smallest_change_grows_with_noise_and_shrinks_with_blocks():
    noisier = [compute_smallest_change(sigma, 5) for sigma in (0.01, 0.02, 0.05, 0.1)]
    longer = [compute_smallest_change(0.03, blocks) for blocks in (2, 3, 5, 10, 20, 100)]
    assert noisier == sorted(noisier)
    assert longer == sorted(longer, reverse=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compute_smallest_change(-0.1, 5), "standard deviation"),
        (lambda: compute_smallest_change(math.nan, 5), "standard deviation"),
        (lambda: compute_smallest_change(0.1, 1), "at least 2 blocks"),
        (lambda: compute_smallest_change(0.1, 5, alpha=0.9), "alpha"),
        (lambda: compute_needed_blocks(0.1, 0.0), "a change"),
        (lambda: compute_needed_blocks(0.1, -1.0), "a change"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
