"""The change with the values of saturated trials, which do not count."""

import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.many import ComparisonInput
from orchestrator.stats.order_effect import CONTENDER_FIRST, CONTENDER_SECOND
from orchestrator.stats.saturated_blocks import SaturatedBlock, estimate_with_saturated
from perf.detection.saturation import measure_saturation

BEFORE, AFTER = [1.0, 1.02, 0.99, 1.01, 1.0, 0.98], [1.1, 1.13, 1.12, 1.1, 1.09, 1.12]
ORDERS = [CONTENDER_FIRST, CONTENDER_SECOND] * 3
BEYOND = (1.0, 1.5)


def estimate(*saturated: tuple[bool, bool], better="lower", orders=ORDERS):
    counted = ComparisonInput(
        baseline=BEFORE, contender=AFTER, better=better, margin=0.05, orders=orders
    )
    blocks = [SaturatedBlock(*BEYOND, CONTENDER_FIRST, sides) for sides in saturated]
    (found,) = estimate_with_saturated([(counted, blocks)])
    return found


@pytest.mark.parametrize("orders", [ORDERS, []])
def test_saturated_blocks_are_added_to_those_that_count(orders):
    found = estimate((False, True), (False, True), orders=orders)
    every = compare_blocks(
        [*BEFORE, 1.0, 1.0],
        [*AFTER, 1.5, 1.5],
        better="lower",
        margin=0.05,
        orders=[*orders, CONTENDER_FIRST, CONTENDER_FIRST] if orders else [],
    )
    assert (found.change, found.low, found.high, found.blocks) == pytest.approx(
        (every.change, every.low, every.high, 2)
    )
    alone = compare_blocks(BEFORE, AFTER, better="lower", margin=0.05, orders=orders)
    assert found.change > alone.change


@pytest.mark.parametrize(
    ("better", "saturated", "bound"),
    [
        ("lower", [(False, True)], "at_least"),
        ("lower", [(True, False)], "at_most"),
        ("higher", [(False, True)], "at_most"),
        ("higher", [(True, False)], "at_least"),
        ("lower", [(True, True)], "unknown"),
        ("lower", [(False, True), (True, False)], "unknown"),
    ],
)
def test_the_bound_depends_on_the_saturated_side(better, saturated, bound):
    assert estimate(*saturated, better=better).bound == bound


def test_without_a_saturated_block_there_is_no_estimate():
    assert estimate() is None


def test_near_saturation_the_saturated_blocks_correct_the_estimate():
    """Without them, a true change of 20 % is underestimated by five points."""
    (none, large) = measure_saturation(200, 6, changes=(0.0, 0.2))
    assert none.counted == pytest.approx(0, abs=0.01)
    assert none.included == pytest.approx(0, abs=0.01)
    assert large.lost > 0.12
    assert large.counted < 0.17
    assert large.included == pytest.approx(0.2, abs=0.02)
    assert large.cut == pytest.approx(0.2, abs=0.03)
