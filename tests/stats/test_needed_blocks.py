"""The estimated number of blocks decides most comparisons, and is never above that of a run."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.needed_blocks import (
    DecisionRule,
    FurtherBlocks,
    NeededBlocks,
    _read,
    _search,
    estimate_needed_blocks,
    export_needed_blocks,
    find_largest,
)
from orchestrator.stats.order_effect import CONTENDER_FIRST, CONTENDER_SECOND
from orchestrator.stats.power import MOST_BLOCKS, POWER
from orchestrator.stats.unpaired import compare_unpaired
from perf.detection.needed_blocks import FACTOR, _compare, _continue, measure_needed_blocks

MARGIN = 0.03
ALONE = DecisionRule()
#: The noise of ten blocks, with a standard deviation of 1.
SCORES = np.array([-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5]) / 0.9487


def alternate(blocks):
    """The orders of blocks of which each second one mirrors the one before."""
    return [CONTENDER_SECOND if at % 2 else CONTENDER_FIRST for at in range(blocks)]


def compare(change, sigma, *, scores=SCORES, known_orders=False):
    """Compare blocks with just this mean and noise."""
    contender = 100 * np.exp(math.log1p(change) + sigma * np.array(scores))
    return compare_blocks(
        [100.0] * len(scores),
        contender.tolist(),
        better="lower",
        margin=MARGIN,
        orders=alternate(len(scores)) if known_orders else (),
    )


def estimate_range(change, sigma, *, rule=ALONE, **more):
    (needed,) = estimate_needed_blocks([compare(change, sigma, **more)], rule)
    return needed


def estimate(change, sigma, **more):
    return estimate_range(change, sigma, **more).probable


@pytest.mark.parametrize("present", [5, 10])
def test_ranges_contain_the_number_really_needed(present):
    """`make bench-detection` measures it with more comparisons."""
    (errors,) = measure_needed_blocks(5, seed=6, presents=(present,))
    assert errors.comparisons > 100
    assert errors.covered >= 0.8
    assert errors.decided >= 0.7
    assert errors.open_ranges < 0.9


@pytest.mark.parametrize("claim_alpha", [0.015, 5e-4])
@pytest.mark.parametrize(("change", "sigma"), [(0.0, 0.04), (0.012, 0.03), (0.06, 0.07)])
def test_the_number_is_right_if_the_measured_change_and_noise_are(change, sigma, claim_alpha):
    """So an estimate is wrong because they are only measured, not because of its calculation."""
    rule = DecisionRule(claim_alpha=claim_alpha)
    present = math.log1p(change) + sigma * SCORES
    measured = _read([_compare(present)])
    known = measured._replace(means=measured.mean[:, None], sigmas=measured.sigma[:, None])
    (total,), *_ = _search(known, rule)
    mean, noise = float(measured.mean[0]), float(measured.sigma[0])
    shares = _continue(np.random.default_rng(21), present, mean, noise, rule)
    really = len(present) + 1 + int(np.flatnonzero(shares >= POWER)[0])
    assert 11 < total < 111
    assert 1 / FACTOR < total / really < FACTOR


def test_the_closer_to_the_margin_the_more_blocks_are_needed():
    below = [estimate(change, 0.03) for change in (0.0, 0.01, 0.015, 0.02, 0.025)]
    above = [estimate(change, 0.03) for change in (0.035, 0.04, 0.05, 0.07)]
    assert below == sorted(below)
    assert above == sorted(above, reverse=True)


@pytest.mark.parametrize("change", [0.029, 0.03, 0.031])
def test_a_change_next_to_the_margin_will_most_likely_stay_open(change):
    result = compare(change, 0.03)
    (needed,) = estimate_needed_blocks([result], ALONE)
    further = needed.count_further(result.blocks)
    assert result.p_value < 0.015
    assert (further.in_reach, further.range[1]) == (None, None)


def test_more_noise_and_more_tests_need_more_blocks():
    by_noise = [estimate(0.01, sigma) for sigma in (0.03, 0.04, 0.05, 0.06)]
    by_family = [
        estimate(0.05, 0.07, rule=DecisionRule(claim_alpha=alpha)) for alpha in (0.015, 1e-3, 1e-4)
    ]
    assert by_noise == sorted(set(by_noise))
    assert by_family == sorted(set(by_family))


def test_a_decision_by_equivalence_hardly_depends_on_the_number_of_tests():
    """Only if the true change is much larger than the measured one does a claim decide it."""
    alone = estimate_range(0.0, 0.04)
    among_many = estimate_range(0.0, 0.04, rule=DecisionRule(claim_alpha=1e-4))
    assert alone.least == among_many.least
    assert alone.most <= among_many.most <= alone.most + 2


def test_more_than_a_run_has_is_out_of_reach():
    needed = estimate_range(0.0, 0.3)
    end = 10 + MOST_BLOCKS + 1
    assert 11 < needed.least < needed.probable == needed.most == end
    assert needed.count_further(10).in_reach is None
    assert export_needed_blocks(needed, 10) == {
        "needed_blocks": None,
        "more_blocks_range": (needed.least - 10, None),
    }


def test_the_range_contains_the_probable_number():
    for change in (0.0, 0.01, 0.02, 0.05, 0.1):
        for sigma in (0.02, 0.05, 0.1):
            needed = estimate_range(change, sigma)
            assert 11 <= needed.least <= needed.probable <= needed.most <= 111


def test_a_range_of_few_blocks_is_wide():
    few = estimate_range(0.0, 0.04, scores=SCORES[::2])
    many = estimate_range(0.0, 0.04, scores=np.tile(SCORES, 3))
    assert few.most / few.least > 2 * many.most / many.least


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [
        (12, 30, "12 to 30 more blocks"),
        (7, 7, "7 more blocks"),
        (1, 1, "1 more block"),
        (7, 100, "7 to 100 more blocks"),
        (7, 101, "7 to over 100 more blocks"),
    ],
)
def test_a_range_is_written_for_people(least, most, text):
    assert FurtherBlocks(probable=most, least=least, most=most).text == text


def test_further_blocks_include_those_that_will_be_excluded():
    needed = NeededBlocks(probable=12, least=7, most=30)
    assert needed.count_further(6) == FurtherBlocks(probable=6, least=1, most=24)
    assert needed.count_further(6, excluded=3) == FurtherBlocks(probable=9, least=2, most=36)


def test_a_case_needs_the_blocks_of_its_most_demanding_metric():
    estimates = [
        NeededBlocks(probable=12, least=7, most=30),
        NeededBlocks(probable=10, least=8, most=90),
    ]
    assert find_largest(estimates) == NeededBlocks(probable=12, least=8, most=90)
    assert find_largest([]) is None


def test_a_clear_change_needs_only_the_fewest_blocks():
    assert estimate(-0.5, 0.1, scores=[-1.0, 0.0, 1.0]) == 5
    assert estimate(-0.5, 0.1, scores=[0.0]) == 5


def test_without_blocks_the_fewest_are_needed():
    nothing = compare_blocks([], [], better="lower", margin=MARGIN)
    assert estimate_needed_blocks([nothing], DecisionRule()) == [
        NeededBlocks(probable=5, least=5, most=MOST_BLOCKS + 1)
    ]


def test_without_a_ratio_or_a_common_block_no_number_is_known():
    zeros = compare_blocks([0.0] * 5, [1.0] * 5, better="lower", margin=MARGIN)
    zero = compare_blocks([0.0], [1.0], better="lower", margin=MARGIN)
    apart = compare_unpaired([[1.0, 1.5]] * 4, [[1.0, 1.4]] * 4, better="lower", margin=MARGIN)
    assert estimate_needed_blocks([zeros, zero, apart], DecisionRule()) == [None] * 3


def test_estimates_of_many_are_those_of_each():
    results = [compare(change, 0.05) for change in (0.0, 0.02, -0.04)]
    results.append(compare(0.01, 0.05, scores=SCORES[::2]))
    alone = [estimate_needed_blocks([each], DecisionRule())[0] for each in results]
    assert estimate_needed_blocks(results, DecisionRule()) == alone


def test_the_effect_of_the_order_costs_a_degree_of_freedom():
    """Blocks of both orders are alike here, so only the degrees of freedom differ."""
    scores = np.repeat([-1.0, 1.0, -0.2, 0.2], 2)
    rule = DecisionRule(claim_alpha=1e-6)
    known, unknown = (
        estimate(0.08, 0.02, scores=scores, rule=rule, known_orders=each) for each in (True, False)
    )
    assert known > unknown
