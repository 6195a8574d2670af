"""What a confirmation run says about a detected change."""

import numpy as np
import pytest

from orchestrator.stats.comparison import Comparison, compare_blocks, compute_standard_error
from orchestrator.stats.confirmation import (
    Confirmation,
    get_confirmation_spending,
    judge_confirmation,
)
from perf.detection.confirmations import confirm

#: Exactly this mean and a spread of one: the tests choose both.
SHAPE = np.array([1.2, -0.4, 0.7, -1.5, 0.1, -0.9, 1.4, -0.6, 0.3, -0.3])
SPREAD = (SHAPE - SHAPE.mean()) / SHAPE.std(ddof=1)


def compare(mean: float, sigma: float, *, margin: float = 0.03, run: int = 1) -> Comparison:
    spending = get_confirmation_spending(run)
    return compare_blocks(
        [1.0] * len(SPREAD),
        np.exp(np.log1p(mean) + sigma * SPREAD).tolist(),
        better="lower",
        margin=margin,
        alpha=spending.alpha,
        equivalence_alpha=spending.equivalence_alpha,
    )


def judge(mean: float, sigma: float, detected: float, *, margin: float = 0.03, run: int = 1) -> str:
    return judge_confirmation(
        compare(mean, sigma, margin=margin, run=run),
        detected=detected,
        spending=get_confirmation_spending(run),
    )


@pytest.mark.parametrize(
    ("mean", "sigma", "detected", "result"),
    [
        (0.05, 0.01, 0.05, "confirmed"),
        (-0.05, 0.01, -0.05, "confirmed"),
        (0.02, 0.005, 0.04, "small"),  # proven to be within the margin
        (0.029, 0.01, 0.04, "small"),  # real, but on which side of the margin?
        (0.0, 0.01, 0.04, "refuted"),
        (0.0, 0.01, 0.005, "undecided"),  # as small as what was detected
        (0.02, 0.05, 0.04, "undecided"),
        (-0.05, 0.01, 0.05, "refuted"),
        (0.05, 0.01, -0.05, "refuted"),
    ],
)
def test_a_change_is_judged_by_direction_size_and_what_was_detected(
    mean: float, sigma: float, detected: float, result: str
) -> None:
    assert judge(mean, sigma, detected) == result


def test_a_real_change_below_the_margin_is_not_refuted() -> None:
    """Of a percentile with a margin of 5 %: 4 % were detected, and 4 % measured."""
    assert judge(0.04, 0.02, 0.04, margin=0.05) == "small"


def test_each_further_run_of_a_change_needs_more() -> None:
    results = [judge(0.05, 0.035, 0.05, run=run) for run in (1, 2, 3)]
    assert results == ["confirmed", "undecided", "undecided"]


def test_two_outliers_do_not_make_a_change_large() -> None:
    """Most blocks differ by 2.6 %. The mean is beyond the margin, the robust estimate is not."""
    logs = np.array([0.025, 0.027] * 9 + [0.15, 0.15])
    spending = get_confirmation_spending(1)
    comparison = compare_blocks(
        [1.0] * 20,
        np.exp(logs).tolist(),
        better="lower",
        margin=0.03,
        alpha=spending.alpha,
        equivalence_alpha=spending.equivalence_alpha,
    )
    assert (comparison.verdict, comparison.fragile) == ("regressed", True)
    assert judge_confirmation(comparison, detected=0.05, spending=spending) == "small"


def test_too_few_blocks_decide_nothing() -> None:
    comparison = compare_blocks([1.0] * 4, [1.05] * 4, better="lower", margin=0.03)
    spending = get_confirmation_spending(1)
    assert judge_confirmation(comparison, detected=0.05, spending=spending) == "undecided"


def test_the_standard_error_is_that_of_the_logs() -> None:
    assert compute_standard_error(compare(0.05, 0.01)) == pytest.approx(0.01 / 10**0.5)


def test_real_changes_are_hardly_refuted_and_others_hardly_confirmed() -> None:
    """`make bench-detection` measures this with more runs, changes and noises."""
    rng = np.random.default_rng(5)
    real = [confirm(rng, noise=0.02, margin=0.05, detected=0.04, true=0.04) for _ in range(60)]
    assert sum(each is Confirmation.REFUTED for each in real) <= 3
    assert sum(each in (Confirmation.SMALL, Confirmation.CONFIRMED) for each in real) >= 45
    none = [confirm(rng, noise=0.02, margin=0.03, detected=0.04, true=0.0) for _ in range(60)]
    assert sum(each in (Confirmation.SMALL, Confirmation.CONFIRMED) for each in none) <= 4
