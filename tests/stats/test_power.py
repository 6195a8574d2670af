"""Which change so many blocks report: against scipy, and the verdicts of the shipped rule."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import judge_matrix
from orchestrator.stats.noise import estimate_noise
from orchestrator.stats.power import (
    ClaimRule,
    build_claim_rule,
    compute_block_sigma,
    compute_needed_blocks,
    compute_power,
    compute_smallest_change,
)

ALONE = build_claim_rule(0.03, family=1)


@pytest.mark.parametrize("blocks", [5, 7, 20, 100])
@pytest.mark.parametrize(("alpha", "distance"), [(0.05, 3.0), (0.015, 4.0), (0.0005, 6.0)])
def test_power_agrees_with_the_noncentral_t_distribution_of_scipy(blocks, alpha, distance):
    """With a margin of nearly zero only the p value counts."""
    error = math.sqrt((1 / (blocks // 2) + 1 / (blocks - blocks // 2)) / 4)
    change = math.expm1(distance * 0.03 * error)
    critical = stats.t.ppf(1 - alpha / 2, blocks - 2)
    power = compute_power(0.03, blocks, change, ClaimRule(margin=1e-9, alpha=alpha))
    assert power == pytest.approx(stats.nct.sf(critical, blocks - 2, distance), abs=1e-3)


@pytest.mark.parametrize("family", [1, pytest.param(3, marks=pytest.mark.slow), 60])
@pytest.mark.parametrize(
    ("noise", "blocks"),
    [(0.005, 5), pytest.param(0.02, 10, marks=pytest.mark.slow), (0.04, 20)],
)
def test_the_smallest_change_is_reported_four_times_in_five(noise, blocks, family):
    """By the verdicts of a comparison in which nothing else has changed."""
    rng = np.random.default_rng(50_000)
    sigma = compute_block_sigma(noise)
    change = compute_smallest_change(sigma, blocks, build_claim_rule(0.03, family=family))

    drawn = rng.normal(math.log1p(change), sigma, (1_000, blocks))
    reported = [
        judge_matrix(
            {"one": {"rate": each}, **_list_unchanged(family - 1)},
            primary=dict.fromkeys(["one", *_list_unchanged(family - 1)], ("rate",)),
        ).cells["one", "rate"]
        for each in compare_many([_build_input(logs) for logs in drawn])
    ]
    assert reported.count("regressed") / 1_000 == pytest.approx(0.8, abs=0.04)


def _build_input(logs):
    contender = (100 * np.exp(logs)).tolist()
    orders = [1 if block % 2 else -1 for block in range(len(logs))]
    return ComparisonInput(
        baseline=[100.0] * len(logs),
        contender=contender,
        better="lower",
        margin=0.03,
        orders=orders,
    )


def _list_unchanged(number):
    logs = 0.001 * np.array([1, -1, 1, -1, 0])
    (same,) = compare_many([_build_input(logs)])
    return {f"other {at}": {"rate": same} for at in range(number)}


@pytest.mark.parametrize("pairs", [5, 10, 30])
def test_the_upper_limit_of_the_noise_is_sufficient_four_times_in_five(pairs):
    rng = np.random.default_rng(51)
    uppers = [estimate_noise(each).upper for each in rng.normal(0, 0.03, (4_000, pairs))]
    assert np.mean(np.array(uppers) >= 0.03) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("sigma", [0.02, 0.04, 0.06])
@pytest.mark.parametrize("blocks", [7, 10, 50])
def test_the_smallest_change_and_the_number_of_blocks_are_inverse(sigma, blocks):
    change = compute_smallest_change(sigma, blocks, ALONE)
    assert compute_needed_blocks(sigma, change * 1.0001, ALONE) == blocks
    assert compute_needed_blocks(sigma, change * 0.9999, ALONE) == blocks + 1


@pytest.mark.parametrize("change", [0.01, 0.03, -0.03])
def test_no_number_of_blocks_reports_a_change_within_the_margin(change):
    assert compute_needed_blocks(0.001, change, ALONE) is None


def test_fewer_blocks_than_a_verdict_needs_report_nothing():
    assert compute_power(0.0, 4, 0.5, ALONE) == 0
    assert compute_needed_blocks(0.0, 0.05, ALONE) == 5


def test_a_change_that_needs_more_blocks_than_a_run_has_no_number():
    assert compute_needed_blocks(0.5, 0.05, ALONE) is None


def test_without_noise_each_change_beyond_the_margin_is_detectable():
    assert compute_smallest_change(0.0, 5, ALONE) == pytest.approx(0.03)
    assert compute_power(0.0, 5, 0.0301, ALONE) == 1
    assert compute_power(0.0, 5, 0.03, ALONE) == 0


def test_noise_and_other_metrics_raise_the_smallest_change_and_blocks_lower_it():
    noisier = [compute_smallest_change(sigma, 5, ALONE) for sigma in (0.01, 0.02, 0.05, 0.1)]
    longer = [compute_smallest_change(0.03, blocks, ALONE) for blocks in (5, 10, 20, 100)]
    more = [
        compute_smallest_change(0.03, 7, build_claim_rule(0.03, family=family))
        for family in (1, 10, 100)
    ]
    assert noisier == sorted(set(noisier))
    assert longer == sorted(set(longer), reverse=True)
    assert more == sorted(set(more))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compute_smallest_change(-0.1, 5, ALONE), "standard deviation"),
        (lambda: compute_smallest_change(math.nan, 5, ALONE), "standard deviation"),
        (lambda: compute_smallest_change(0.1, 4, ALONE), "at least 5 blocks"),
        (lambda: compute_needed_blocks(0.1, 0.0, ALONE), "a change"),
        (lambda: compute_needed_blocks(0.1, -1.0, ALONE), "a change"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
