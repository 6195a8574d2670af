"""Verdicts on the blocks of several runs share one error rate."""

import numpy as np
import pytest

from orchestrator.stats.alpha_spending import ERROR_RATE, Spending
from orchestrator.stats.comparison import ALPHA, EQUIVALENCE_ALPHA
from perf.detection.error_rates import MARGIN, STEPS, measure_reruns


def test_the_shares_of_all_runs_add_up_to_the_whole() -> None:
    shares = [Spending(runs=run).share for run in range(1, 10_001)]
    assert shares == sorted(shares, reverse=True)
    assert 0.999 < sum(shares) <= 1
    assert 5 * Spending(runs=3, analyses=5).share == pytest.approx(Spending(runs=3).share)


def test_one_run_with_fixed_rounds_uses_the_alphas_of_a_comparison_on_its_own() -> None:
    alone = Spending()
    assert alone.alpha > ALPHA
    assert alone.equivalence_alpha == EQUIVALENCE_ALPHA
    assert alone.alpha * alone.penalty == pytest.approx(ERROR_RATE)
    second = alone.after_another_run()
    assert (second.runs, second.analyses) == (2, 1)
    assert second.alpha < ALPHA
    assert second.equivalence_alpha < EQUIVALENCE_ALPHA
    assert Spending(analyses=5).after_another_run() == second


@pytest.mark.parametrize("steps", STEPS)
def test_repeated_runs_rarely_claim_a_change_that_does_not_exist(steps: str) -> None:
    """With one threshold for all of them, 10 % would."""
    assert measure_reruns(np.random.default_rng(91), 400, 0.0, 0.1, steps) <= 0.05


@pytest.mark.parametrize("steps", STEPS)
def test_repeated_runs_rarely_call_the_margin_unimportant(steps: str) -> None:
    assert measure_reruns(np.random.default_rng(92), 300, MARGIN, 0.02, steps) <= 0.05
