"""How often the shipped comparison is wrong, on drifting hosts, with fixed seeds."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import Verdict, compare_blocks
from orchestrator.stats.interim import INTERIM_BLOCKS
from perf.detection.comparisons import MARGIN, measure_comparisons

UNIMPORTANT = {Verdict.TRIVIAL, Verdict.EQUIVALENT}
CHANGED = {Verdict.REGRESSED, Verdict.IMPROVED, Verdict.TRIVIAL}


def blocks(rng, n, *, log_change=0.0, noise=0.03):
    """Trials on a host that drifts by 2 % from block to block: block i's two share the drift."""
    drift = np.cumsum(rng.normal(0, 0.02, n))
    baseline = 1000 * np.exp(drift + rng.normal(0, noise, n))
    contender = 1000 * np.exp(drift + log_change + rng.normal(0, noise, n))
    return baseline.tolist(), contender.tolist()


def share(found, wanted):
    return sum(wanted(one) for one in found) / len(found)


@pytest.mark.parametrize("n", [5, 10])
def test_false_positives_are_as_rare_as_stated(n):
    rng = np.random.default_rng(20_000 + n)
    comparisons = [
        compare_blocks(*blocks(rng, n), better="higher", margin=0.03, alpha=0.05)
        for _ in range(3_000)
    ]
    assert 0.03 <= share(comparisons, lambda one: one.p_value < 0.05) <= 0.06
    assert share(comparisons, lambda one: one.verdict in CHANGED) <= 0.06


@pytest.mark.parametrize("n", [5, 10])
def test_the_interval_covers_the_true_change(n):
    rng = np.random.default_rng(30_000 + n)
    truth = 0.04
    comparisons = [
        compare_blocks(*blocks(rng, n, log_change=math.log1p(truth)), better="lower", margin=0.03)
        for _ in range(2_000)
    ]
    assert share(comparisons, lambda one: one.low <= truth <= one.high) >= 0.93


@pytest.mark.parametrize("truth", [0.03, -0.03])
def test_false_equivalence_is_as_rare_as_stated(truth):
    rng = np.random.default_rng(40_000)
    comparisons = [
        compare_blocks(
            *blocks(rng, 10, log_change=math.log1p(truth), noise=0.01),
            better="higher",
            margin=0.03,
            alpha=1e-9,
            equivalence_alpha=0.05,
        )
        for _ in range(2_000)
    ]
    assert 0.02 <= share(comparisons, lambda one: one.verdict is Verdict.EQUIVALENT) <= 0.06


def first_verdict(baseline, contender):
    """What a job that stops at the first look with a verdict ends with."""
    for look in INTERIM_BLOCKS:
        verdict = compare_blocks(
            baseline[:look], contender[:look], better="higher", margin=0.03
        ).verdict
        if verdict is not Verdict.INCONCLUSIVE:
            return verdict
    return Verdict.INCONCLUSIVE


def test_five_interim_analyses_do_not_raise_the_error_rate():
    rng = np.random.default_rng(50_000)
    runs = [first_verdict(*blocks(rng, 20)) for _ in range(1_500)]
    assert share(runs, CHANGED.__contains__) <= 0.05


def test_five_interim_analyses_do_not_raise_false_equivalence():
    rng = np.random.default_rng(60_000)
    change = math.log1p(0.03)
    runs = [first_verdict(*blocks(rng, 20, log_change=change, noise=0.015)) for _ in range(1_500)]
    assert share(runs, Verdict.EQUIVALENT.__eq__) <= 0.05


def test_the_margin_is_rarely_called_unimportant_at_any_interim_analysis():
    """With little noise, each of the five analyses can prove too much."""
    rates = [
        measure_comparisons(np.random.default_rng(61), 6_000, noise, MARGIN)
        for noise in (0.005, 0.01)
    ]
    assert max(each.trivial + each.equivalent for each in rates) <= 0.05
    assert min(each.trivial + each.equivalent for each in rates) >= 0.03


@pytest.mark.parametrize(("noise", "at_least"), [(0.01, 0.99), (0.02, 0.9)])
def test_a_slowdown_of_ten_percent_is_found(noise, at_least):
    rng = np.random.default_rng(70_000)
    runs = [
        first_verdict(*blocks(rng, 20, log_change=math.log(0.9), noise=noise)) for _ in range(500)
    ]
    assert share(runs, Verdict.REGRESSED.__eq__) >= at_least


def disturbed_blocks(rng, n, *, begin, end, log_change=0.0):
    """Blocks on a host with other work: a trial that starts in a burst costs 10 to 100 % more.

    `begin` and `end`: the probability that a burst begins or ends between two trials. The order of
    the two trials of a block is random, as in a run.
    """
    bursts = [rng.random() < begin / (begin + end)]
    for _ in range(2 * n - 1):
        bursts.append(rng.random() >= end if bursts[-1] else rng.random() < begin)
    extra = np.where(bursts, rng.uniform(0.1, 0.7, 2 * n), 0.0) + rng.normal(0, 0.01, 2 * n)
    pairs = rng.permuted(extra.reshape(n, 2), axis=1)
    return np.exp(pairs[:, 0]).tolist(), np.exp(pairs[:, 1] + log_change).tolist()


BURSTS = [(0.3, 0.3), (0.05, 0.3), (0.5, 0.05), (0.02, 0.02)]


@pytest.mark.parametrize("n", [5, pytest.param(10, marks=pytest.mark.slow), 20])
@pytest.mark.parametrize(("begin", "end"), BURSTS)
def test_a_shared_host_causes_no_false_change(begin, end, n):
    rng = np.random.default_rng(80_000 + n)
    comparisons = [
        compare_blocks(*disturbed_blocks(rng, n, begin=begin, end=end), better="lower", margin=0.03)
        for _ in range(1_000)
    ]
    assert share(comparisons, lambda one: one.verdict in CHANGED) <= 0.03
    assert share(comparisons, lambda one: one.low <= 0 <= one.high) >= 0.93


@pytest.mark.parametrize(("begin", "end"), BURSTS)
def test_a_shared_host_hides_no_change_as_equivalent(begin, end):
    rng = np.random.default_rng(90_000)
    change = math.log1p(0.03)
    comparisons = [
        compare_blocks(
            *disturbed_blocks(rng, 10, begin=begin, end=end, log_change=change),
            better="lower",
            margin=0.03,
        )
        for _ in range(1_000)
    ]
    assert share(comparisons, lambda one: one.verdict in UNIMPORTANT) <= 0.03


def test_other_work_makes_intervals_wider():
    rng = np.random.default_rng(95_000)

    def median_width(begin, end):
        found = [
            compare_blocks(
                *disturbed_blocks(rng, 10, begin=begin, end=end), better="lower", margin=0.03
            )
            for _ in range(300)
        ]
        return np.median([one.half_width for one in found])

    assert median_width(0.3, 0.3) > 5 * median_width(1e-9, 1.0)
