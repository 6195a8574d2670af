"""The effect of the order within blocks is separated from the change."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.order_effect import CONTENDER_FIRST, CONTENDER_SECOND, UNKNOWN, find_order
from orchestrator.stats.summary import compute_t_quantile
from perf.detection.comparisons import compare_until_decided
from perf.detection.false_claims import count_claims, draw_orders, draw_trials

RULES = {"better": "lower", "margin": 0.03}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [5, 8, 21])
def test_the_result_is_that_of_least_squares(seed, n):
    rng = np.random.default_rng([seed, n])
    orders = rng.permutation([1, 1, -1, -1, *rng.choice([1, -1], n - 4)])
    before, after = draw_trials(rng, orders, effect=0.04, noise=0.02)
    after *= 1.05
    found = compare_blocks(before.tolist(), after.tolist(), orders=orders.tolist(), **RULES)
    design = np.column_stack([np.ones(n), orders])
    (mean, effect), squares, *_ = np.linalg.lstsq(design, np.log(after / before))
    covariance = squares[0] / (n - 2) * np.linalg.inv(design.T @ design)
    reach = compute_t_quantile(0.95, n - 2) * math.sqrt(covariance[0, 0])
    assert (found.degrees, found.order_note) == (n - 2, "")
    assert math.log1p(found.change) == pytest.approx(mean)
    assert math.log1p(found.low) == pytest.approx(mean - reach)
    assert found.order_effect is not None
    assert math.log1p(found.order_effect.change) == pytest.approx(effect)
    assert math.log1p(found.order_effect.high) == pytest.approx(effect + reach)


@pytest.mark.parametrize(
    ("orders", "note"),
    [
        ([], "not known"),
        ([1, -1, 1, -1, UNKNOWN, 1], "not known"),
        ([1] * 6, "first in 0 and second in 6"),
        ([-1, 1, 1, 1, 1, 1], "first in 1 and second in 5"),
    ],
)
def test_the_plain_analysis_is_used_and_reported_if_orders_are_missing(orders, note):
    values = [1.0, 1.02, 0.99, 1.01, 1.0, 0.98], [1.1, 1.13, 1.12, 1.1, 1.09, 1.12]
    found = compare_blocks(*values, orders=orders, **RULES)
    plain = compare_blocks(*values, **RULES)
    assert note in found.order_note
    assert (found.order_effect, found.degrees) == (None, 5)
    assert (found.change, found.low, found.p_value) == (plain.change, plain.low, plain.p_value)


def test_an_excluded_block_has_no_order():
    before, after = [1.0, None, 1.01, 0.99, 1.0, 1.02], [1.1, 1.1, 1.12, 1.1, 1.11, 1.09]
    found = compare_blocks(before, after, orders=[1, -1, -1, 1, -1, 1], **RULES)
    assert (found.blocks, found.degrees) == (5, 3)
    few = compare_blocks(before, after, orders=[1, -1, -1, 1, 1, 1], **RULES)
    assert "first in 1" in few.order_note


def test_orders_of_another_number_of_blocks_are_refused():
    with pytest.raises(ValueError, match="6 blocks but 5 orders"):
        compare_blocks([1.0] * 6, [1.0] * 6, orders=[1] * 5, **RULES)
    cell = ComparisonInput(baseline=[1.0] * 6, contender=[1.0] * 6, orders=[1] * 5, **RULES)
    with pytest.raises(ValueError, match="orders"):
        compare_many([cell])


def test_the_order_of_two_trials_follows_from_their_places():
    assert find_order(3, 4) == CONTENDER_SECOND
    assert find_order(4, 3) == CONTENDER_FIRST
    assert find_order(0, 3) == find_order(3, 0) == UNKNOWN


@pytest.mark.parametrize("effect", [0.04, 0.05])
@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02])
def test_the_order_causes_no_false_change(effect, noise):
    rng = np.random.default_rng([67, round(1000 * effect), round(1000 * noise)])
    orders = draw_orders(rng, 600, INTERIM_BLOCKS[-1])
    before, after = draw_trials(rng, orders, effect=effect, noise=noise)
    ends = compare_until_decided(before, after, orders)
    assert count_claims(ends) <= 0.05
    covered = [each.order_effect.low <= effect <= each.order_effect.high for each in ends]
    assert np.mean(covered) >= 0.9


def test_a_random_order_without_its_effect_would_cause_false_changes():
    """The reason for balanced orders: at five blocks, one case in sixteen has a single order."""
    rng = np.random.default_rng(68)
    orders = rng.choice([1, -1], (600, INTERIM_BLOCKS[-1]))
    before, after = draw_trials(rng, orders, effect=0.04, noise=0.005)
    assert count_claims(compare_until_decided(before, after)) >= 0.04


def test_without_the_effect_of_the_order_intervals_are_narrower():
    rng = np.random.default_rng(69)
    orders = draw_orders(rng, 200, 10)
    before, after = draw_trials(rng, orders, effect=0.04, noise=0.01)
    sides = list(zip(before.tolist(), after.tolist(), orders.tolist(), strict=True))
    plain = [compare_blocks(one, other, **RULES).half_width for one, other, _ in sides]
    found = [compare_blocks(one, other, orders=at, **RULES).half_width for one, other, at in sides]
    assert np.median(found) < 0.5 * np.median(plain)
