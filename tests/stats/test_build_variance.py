"""Blocks are nested in builds: the variance between builds enters the interval."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.summary import compute_t_quantile
from perf.detection.build_noise import Variation, compare_builds
from perf.detection.false_claims import count_claims

RULES = {"better": "lower", "margin": 0.03}
#: The builds of ten blocks, in pairs of rounds.
FIVE_BUILDS = [(build, build + 10) for build in range(1, 6) for _ in range(2)]


def draw_sides(seed: int, between: float, n: int = 10) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    levels = np.repeat(rng.normal(0, between, -(-n // 2)), 2)[:n]
    after = np.exp(levels + rng.normal(0, 0.002, n))
    return [1.0] * n, after.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_with_equal_numbers_of_blocks_it_is_the_t_test_of_the_means_of_builds(seed):
    before, after = draw_sides(seed, between=0.03)
    found = compare_blocks(before, after, builds=FIVE_BUILDS, **RULES)
    means = np.log(after).reshape(5, 2).mean(axis=1)
    reach = compute_t_quantile(0.95, 4) * means.std(ddof=1) / math.sqrt(5)
    assert found.nested
    assert found.degrees == pytest.approx(4)
    assert math.log1p(found.change) == pytest.approx(means.mean())
    assert math.log1p(found.high) == pytest.approx(means.mean() + reach)
    assert found.robust is None
    assert (found.builds, found.has_one_build) == ((5, 5), False)


def test_equal_builds_leave_the_result_as_it_is():
    values = [1.0, 1.01, 1.01, 1.0, 1.0, 1.01, 1.01, 1.0, 1.0, 1.01]
    plain = compare_blocks([1.0] * 10, values, **RULES)
    found = compare_blocks([1.0] * 10, values, builds=FIVE_BUILDS, **RULES)
    assert not found.nested
    assert (found.low, found.high, found.degrees) == (plain.low, plain.high, plain.degrees)


def test_builds_of_one_side_alone_also_widen_the_interval_and_are_reported():
    before, after = draw_sides(3, between=0.03)
    builds = [(1, contender) for _, contender in FIVE_BUILDS]
    found = compare_blocks(before, after, builds=builds, **RULES)
    assert found.nested
    assert (found.builds, found.has_one_build) == ((1, 5), True)


@pytest.mark.parametrize(
    ("builds", "counts"),
    [([], (0, 0)), ([(7, 8)] * 10, (1, 1)), ([(7, 0)] * 5 + [(7, 8)] * 5, (1, 0))],
)
def test_one_build_or_none_known_changes_nothing_but_the_counts(builds, counts):
    before, after = draw_sides(4, between=0.0)
    plain = compare_blocks(before, after, **RULES)
    found = compare_blocks(before, after, builds=builds, **RULES)
    assert (found.builds, found.change) == (counts, plain.change)
    if len(set(builds)) < 2:
        assert (found.low, found.nested) == (plain.low, False)


def test_if_each_block_has_its_own_builds_blocks_are_the_replicates():
    before, after = draw_sides(5, between=0.03)
    plain = compare_blocks(before, after, **RULES)
    own = compare_blocks(before, after, builds=[(n, n) for n in range(1, 11)], **RULES)
    assert (own.low, own.high, own.degrees) == (plain.low, plain.high, plain.degrees)
    assert own.builds == (10, 10)


def test_the_effect_of_the_order_keeps_its_own_error():
    before, after = draw_sides(6, between=0.03)
    orders = [1, -1] * 5
    found = compare_blocks(before, after, orders=orders, builds=FIVE_BUILDS, **RULES)
    plain = compare_blocks(before, after, orders=orders, **RULES)
    assert found.nested
    assert found.order_effect == plain.order_effect
    assert found.half_width > plain.half_width


@pytest.mark.parametrize("n", [5, 10, 13])
def test_many_comparisons_give_the_same_results_as_single_ones(n):
    cells = []
    for seed in range(8):
        before, after = draw_sides(seed, between=0.02, n=n)
        builds = [] if seed % 3 == 0 else [(at // 2 + 1, at // 2 + 1) for at in range(n)]
        orders = [1, -1] * n if seed % 2 else []
        cells.append(
            ComparisonInput(
                baseline=before, contender=after, orders=orders[:n], builds=builds, **RULES
            )
        )
    for cell, found in zip(cells, compare_many(cells), strict=True):
        alone = compare_blocks(
            cell.baseline, cell.contender, orders=cell.orders, builds=cell.builds, **RULES
        )
        assert (found.verdict, found.builds, found.nested) == (
            alone.verdict, alone.builds, alone.nested,
        )  # fmt: skip
        assert (found.low, found.high, found.p_value, found.degrees) == pytest.approx(
            (alone.low, alone.high, alone.p_value, alone.degrees)
        )


def test_builds_of_another_number_of_blocks_are_refused():
    with pytest.raises(ValueError, match="6 blocks but 5 pairs of builds"):
        compare_blocks([1.0] * 6, [1.0] * 6, builds=[(1, 1)] * 5, **RULES)
    cell = ComparisonInput(baseline=[1.0] * 6, contender=[1.0] * 6, builds=[(1, 1)] * 5, **RULES)
    with pytest.raises(ValueError, match="builds"):
        compare_many([cell])


@pytest.mark.parametrize("between", [0.01, 0.02])
def test_the_difference_between_builds_causes_no_false_change(between):
    rng = np.random.default_rng([68, round(1000 * between)])
    each = Variation(0.01, between, 5)
    found = [compare_builds(rng, each, 0.0) for _ in range(500)]
    assert count_claims(found) <= 0.03
    assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.93


def test_one_build_a_side_would_cause_false_changes():
    """The reason for several builds."""
    rng = np.random.default_rng(69)
    found = [compare_builds(rng, Variation(0.01, 0.02, 1), 0.0) for _ in range(500)]
    assert count_claims(found) >= 0.2


def test_a_change_is_found_at_the_first_analysis_with_three_builds_or_later():
    rng = np.random.default_rng(70)
    found = {
        rounds: np.mean(
            [
                compare_builds(rng, Variation(0.005, 0.0, 5), 0.1, rounds=rounds).verdict
                == "regressed"
                for _ in range(50)
            ]
        )
        for rounds in INTERIM_BLOCKS
    }
    assert found[INTERIM_BLOCKS[0]] > 0.5
    assert found[10] > 0.95
