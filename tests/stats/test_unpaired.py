"""Two sides that share no block: Welch's test on logs, said loudly."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from orchestrator.stats.comparison import Verdict
from orchestrator.stats.unpaired import UNPAIRED, compare_unpaired

RULES = {"better": "lower", "margin": 0.03}


@pytest.mark.parametrize("seed", range(20))
def test_the_test_equals_welch_of_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = (int(n) for n in generator.integers(2, 30, 2))
    before = np.exp(generator.normal(0, 0.02, first))
    after = np.exp(generator.normal(0.01, 0.1, second))
    comparison = compare_unpaired(before.tolist(), after.tolist(), **RULES)
    wanted = ttest_ind(np.log(after), np.log(before), equal_var=False)
    interval = wanted.confidence_interval(0.95)
    assert comparison.p_value == pytest.approx(wanted.pvalue, rel=1e-9)
    assert comparison.low == pytest.approx(np.expm1(interval.low), rel=1e-9)
    assert comparison.high == pytest.approx(np.expm1(interval.high), rel=1e-9)
    shift = np.log1p(0.03)
    above = ttest_ind(np.log(after) - shift, np.log(before), equal_var=False, alternative="less")
    below = ttest_ind(
        np.log(after) - np.log1p(-0.03), np.log(before), equal_var=False, alternative="greater"
    )
    assert comparison.equivalence_p == pytest.approx(max(above.pvalue, below.pvalue), rel=1e-9)


def test_the_result_is_always_marked_unpaired() -> None:
    worse = compare_unpaired([1.0, 1.01, 0.99] * 3, [1.2, 1.21, 1.19] * 3, **RULES)
    same = compare_unpaired([1.0, 1.01, 0.99] * 9, [1.0, 1.01, 0.99] * 9, **RULES)
    open_ = compare_unpaired([1.0, 1.5, 0.7] * 3, [1.1, 1.5, 0.8] * 3, **RULES)
    comparisons = [worse, same, open_]
    verdicts = [Verdict.REGRESSED, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE]
    assert [each.verdict for each in comparisons] == verdicts
    assert all(each.reasons[0] == UNPAIRED and not each.paired for each in comparisons)


def test_fewer_than_five_trials_of_a_side_are_inconclusive() -> None:
    comparison = compare_unpaired([1.0, 1.01, 0.99, 1.0], [2.0, 2.01] * 5, **RULES)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "4 of at least 5 trials" in comparison.reasons
    assert comparison.change == pytest.approx(1.005, rel=1e-2)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [([], [1.0], None), ([1.0], [2.0], 1.0), ([0.0] * 6, [1.0] * 6, None), ([None], [1.0], None)],
)
def test_missing_trials_are_reported(before: list, after: list, change: float | None) -> None:
    comparison = compare_unpaired(before, after, **RULES)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert (comparison.change, comparison.p_value) == (change, None)
    assert len(comparison.reasons) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_invalid_measurements_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        compare_unpaired([value] * 5, [1.0] * 5, **RULES)


def test_sides_without_spread_have_a_verdict() -> None:
    assert compare_unpaired([1.0] * 5, [1.2] * 7, **RULES).verdict is Verdict.REGRESSED
    assert compare_unpaired([1.0] * 5, [1.0] * 7, **RULES).verdict is Verdict.EQUIVALENT


def test_neither_scale_nor_order_matters() -> None:
    generator = np.random.default_rng(3)
    before, after = (np.exp(generator.normal(0, 0.05, n)) for n in (6, 9))
    plain = compare_unpaired(before.tolist(), after.tolist(), **RULES)
    large = compare_unpaired((before * 1e6)[::-1].tolist(), (after * 1e6).tolist(), **RULES)
    assert large.verdict is plain.verdict
    assert large.p_value == pytest.approx(plain.p_value, rel=1e-9)
