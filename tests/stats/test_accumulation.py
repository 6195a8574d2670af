"""Small changes that add up."""

import math

import pytest

from orchestrator.stats.accumulation import RealChange, add_up_small_changes


def change(size: float, *, small: bool = True, better: str = "lower") -> RealChange:
    return RealChange(
        difference=math.log1p(size),
        error=0.003,
        small=small,
        worse=(size > 0) == (better == "lower"),
    )


def test_two_small_regressions_are_together_beyond_the_margin() -> None:
    total = add_up_small_changes([change(0.02), change(0.02)], 0.03)
    assert total is not None
    assert total.changes == 2
    assert total.change == pytest.approx(0.0404)
    # The standard errors add up as squares: 0.42 %.
    assert total.high - total.low == pytest.approx(2 * 2.086 * 0.00424 * 1.04, rel=0.02)


def test_a_metric_that_should_be_high_falls_step_by_step() -> None:
    falls = [change(-0.02, better="higher")] * 2
    total = add_up_small_changes(falls, 0.03)
    assert total is not None
    assert total.change == pytest.approx(-0.0396)


@pytest.mark.parametrize(
    "sizes",
    [
        [0.02],  # one change has been judged alone
        [0.012, 0.012],  # still within the margin
        [0.02, 0.02, -0.02],  # one was taken back
        [-0.02, -0.02],  # improvements
    ],
)
def test_these_add_up_to_nothing(sizes: list[float]) -> None:
    assert add_up_small_changes([change(size) for size in sizes], 0.03) is None


def test_a_large_improvement_counts_against_small_regressions() -> None:
    small = [change(0.02), change(0.02)]
    assert add_up_small_changes([*small, change(-0.1, small=False)], 0.03) is None


def test_a_large_regression_does_not_hide_small_ones_and_is_not_counted() -> None:
    small = [change(0.02), change(0.02)]
    total = add_up_small_changes([*small, change(0.1, small=False)], 0.03)
    assert total is not None
    assert total.change == pytest.approx(0.0404)
