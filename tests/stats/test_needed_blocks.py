"""The estimated number of blocks decides most comparisons, and is never above that of a run."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import Verdict, compare_blocks
from orchestrator.stats.needed_blocks import (
    EVEN_ODDS,
    DecisionRule,
    estimate_needed_blocks,
    is_out_of_reach,
)
from orchestrator.stats.order_effect import (
    CONTENDER_FIRST,
    CONTENDER_SECOND,
    UNKNOWN,
    compute_block_means,
)
from orchestrator.stats.power import MOST_BLOCKS
from orchestrator.stats.unpaired import compare_unpaired

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


def estimate(change, sigma, *, rule=ALONE, **more):
    (needed,) = estimate_needed_blocks([compare(change, sigma, **more)], rule)
    return needed


def decide(rng, present, total, mean, sigma, rule, orders):
    """The share of continuations to `total` blocks that are decided."""
    decided = 0
    for _ in range(300):
        further = rng.normal(mean, sigma, total - len(present))
        contender = np.exp(np.concatenate([present, further])).tolist()
        each = compare_blocks(
            [1.0] * total, contender, better="lower", margin=MARGIN, orders=orders[:total]
        )
        claim = each.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
        kept = not claim or each.p_value < rule.claim_alpha
        decided += kept and each.verdict is not Verdict.INCONCLUSIVE
    return decided / 300


@pytest.mark.parametrize("known_orders", [False, True])
@pytest.mark.parametrize("claim_alpha", [0.015, 0.0005])
@pytest.mark.parametrize(("change", "sigma"), [(0.0, 0.04), (0.012, 0.03), (0.06, 0.07)])
def test_four_in_five_are_decided_if_the_measured_change_and_noise_are_right(
    change, sigma, claim_alpha, known_orders
):
    """`make bench-detection` measures it with the true ones."""
    rule = DecisionRule(claim_alpha=claim_alpha)
    total = estimate(change, sigma, rule=rule, known_orders=known_orders)
    orders = alternate(2 * total) if known_orders else ()
    present = math.log1p(change) + sigma * SCORES
    rng = np.random.default_rng(21)
    means = compute_block_means(present[None], np.array([orders[:10] or [UNKNOWN] * 10]))
    mean, noise = float(means.mean[0]), float(means.error[0]) * math.sqrt(10)
    assert decide(rng, present, round(total * 1.5), mean, noise, rule, orders) >= 0.8
    assert decide(rng, present, max(11, round(total / 1.7)), mean, noise, rule, orders) <= 0.8


def test_the_closer_to_the_margin_the_more_blocks_are_needed():
    below = [estimate(change, 0.03) for change in (0.0, 0.01, 0.015, 0.02, 0.025)]
    above = [estimate(change, 0.03) for change in (0.035, 0.04, 0.05, 0.07)]
    assert below == sorted(below)
    assert above == sorted(above, reverse=True)


@pytest.mark.parametrize("change", [0.029, 0.03, 0.031])
def test_a_change_next_to_the_margin_will_most_likely_stay_open(change):
    result = compare(change, 0.03)
    (needed,) = estimate_needed_blocks([result], ALONE)
    assert result.p_value < 0.015
    assert is_out_of_reach(result, needed)


def test_more_noise_and_more_tests_need_more_blocks():
    by_noise = [estimate(0.01, sigma) for sigma in (0.03, 0.04, 0.05, 0.06)]
    by_family = [
        estimate(0.05, 0.07, rule=DecisionRule(claim_alpha=alpha)) for alpha in (0.015, 1e-3, 1e-4)
    ]
    assert by_noise == sorted(set(by_noise))
    assert by_family == sorted(set(by_family))


def test_a_decision_by_equivalence_does_not_depend_on_the_number_of_tests():
    assert estimate(0.0, 0.04) == estimate(0.0, 0.04, rule=DecisionRule(claim_alpha=1e-4))


def test_more_than_a_run_has_is_out_of_reach():
    result = compare(0.0, 0.3)
    (needed,) = estimate_needed_blocks([result], DecisionRule())
    assert needed == 10 + MOST_BLOCKS + 1
    assert is_out_of_reach(result, needed)
    assert not is_out_of_reach(result, needed - 1)


def test_even_odds_need_fewer_blocks():
    result = compare(0.01, 0.05)
    (probable,) = estimate_needed_blocks([result], ALONE)
    (even,) = estimate_needed_blocks([result], ALONE, EVEN_ODDS)
    assert 10 < even < probable < 10 + MOST_BLOCKS


def test_a_clear_change_needs_only_the_fewest_blocks():
    assert estimate(-0.5, 0.1, scores=[-1.0, 0.0, 1.0]) == 5
    assert estimate(-0.5, 0.1, scores=[0.0]) == 5


def test_without_blocks_the_fewest_are_needed():
    nothing = compare_blocks([], [], better="lower", margin=MARGIN)
    assert estimate_needed_blocks([nothing], DecisionRule()) == [5]


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
