"""Two sides that share no block: Welch's test on the means of runs, said loudly."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from orchestrator.stats.comparison import Verdict
from orchestrator.stats.unpaired import FEWEST_RUNS, UNCONFIRMED, UNPAIRED, compare_unpaired

RULES = {"better": "lower", "margin": 0.03}
CLAIMS = {Verdict.REGRESSED, Verdict.IMPROVED, Verdict.TRIVIAL, Verdict.EQUIVALENT}


def draw_runs(rng, runs, trials, *, between=0.0, within=0.02, level=0.0):
    """The values of the trials of each run; its mean differs from `level` by chance."""
    levels = rng.normal(level, between, runs)
    return [np.exp(rng.normal(each, within, trials)).tolist() for each in levels]


def mean_logs(runs):
    return [np.log(run).mean() for run in runs]


@pytest.mark.parametrize("seed", range(20))
def test_the_test_equals_welch_of_scipy_on_the_means_of_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (int(n) for n in rng.integers(FEWEST_RUNS, 12, 2))
    before = draw_runs(rng, first, 4, between=0.02)
    after = draw_runs(rng, second, 7, between=0.1, level=0.01)
    comparison = compare_unpaired(before, after, **RULES)
    old, new = mean_logs(before), mean_logs(after)
    wanted = ttest_ind(new, old, equal_var=False)
    interval = wanted.confidence_interval(0.95)
    assert comparison.degrees == pytest.approx(wanted.df)
    assert comparison.p_value == pytest.approx(wanted.pvalue, rel=1e-9)
    assert comparison.low == pytest.approx(np.expm1(interval.low), rel=1e-9)
    assert comparison.high == pytest.approx(np.expm1(interval.high), rel=1e-9)
    shift = np.log1p(0.03)
    above = ttest_ind(np.array(new) - shift, old, equal_var=False, alternative="less")
    below = ttest_ind(np.array(new) - np.log1p(-0.03), old, equal_var=False, alternative="greater")
    assert comparison.equivalence_p == pytest.approx(max(above.pvalue, below.pvalue), rel=1e-9)


def test_the_result_is_always_marked_unpaired() -> None:
    near = [[1.0, 1.01], [0.99, 1.0], [1.0, 0.99]]
    worse = compare_unpaired(near, [[1.2, 1.21], [1.19, 1.2], [1.2, 1.2]], **RULES)
    same = compare_unpaired(near * 3, near * 3, **RULES)
    open_ = compare_unpaired([[1.0] * 2, [1.5] * 2, [0.7] * 2], [[1.1] * 2] * 3, **RULES)
    few = compare_unpaired([[1.0, 1.01, 0.99] * 2], [[1.2, 1.21, 1.19] * 2], **RULES)
    comparisons = [worse, same, open_, few]
    verdicts = [
        Verdict.REGRESSED, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE,
    ]  # fmt: skip
    assert [each.verdict for each in comparisons] == verdicts
    assert all(each.reasons[0] == UNPAIRED and not each.paired for each in comparisons)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 2), (1, 9), (9, 2)])
def test_a_difference_between_few_runs_is_not_confirmed(first: int, second: int) -> None:
    old = [[1.0, 1.01, 0.99, 1.0, 1.0]] * first
    found = compare_unpaired(old, [[1.2, 1.21, 1.19, 1.2, 1.2]] * second, **RULES)
    assert (found.verdict, found.unconfirmed) == (Verdict.INCONCLUSIVE, True)
    assert found.change == pytest.approx(0.2, rel=1e-2)
    assert (found.low, found.high, found.p_value, found.half_width) == (None,) * 4
    assert found.reasons[1].startswith(f"{UNCONFIRMED}: {first} and {second} of at least 3 runs")
    same = compare_unpaired(old, [[1.0, 1.01, 0.99, 1.0, 1.0]] * second, **RULES)
    assert (same.verdict, same.unconfirmed) == (Verdict.INCONCLUSIVE, False)
    assert same.reasons[1].startswith(f"{first} and {second} of at least 3 runs")


def test_fewer_than_five_trials_of_a_side_are_inconclusive() -> None:
    comparison = compare_unpaired([[1.0], [1.01], [0.99], [1.0]], [[2.0, 2.01]] * 5, **RULES)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert not comparison.unconfirmed
    assert "4 of at least 5 trials" in comparison.reasons
    assert comparison.change == pytest.approx(1.005, rel=1e-2)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ([], [[1.0]], None),
        ([[1.0]], [[2.0]], 1.0),
        ([[0.0] * 6], [[1.0] * 6], None),
        ([[], []], [[1.0]], None),
    ],
)
def test_missing_trials_are_reported(before: list, after: list, change: float | None) -> None:
    comparison = compare_unpaired(before, after, **RULES)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert (comparison.change, comparison.p_value) == (change, None)
    assert len(comparison.reasons) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_invalid_measurements_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        compare_unpaired([[value] * 5], [[1.0] * 5], **RULES)


def test_sides_without_spread_have_a_verdict() -> None:
    fast, slow = [[1.0, 1.0]] * 3, [[1.2, 1.2]] * 4
    assert compare_unpaired(fast, slow, **RULES).verdict is Verdict.REGRESSED
    assert compare_unpaired(fast, fast, **RULES).verdict is Verdict.EQUIVALENT


def test_neither_scale_nor_order_matters() -> None:
    rng = np.random.default_rng(3)
    before, after = (draw_runs(rng, n, 5, between=0.05) for n in (6, 9))
    plain = compare_unpaired(before, after, **RULES)
    large = compare_unpaired(
        [[1e6 * value for value in run] for run in before[::-1]],
        [[1e6 * value for value in run] for run in after],
        **RULES,
    )
    assert large.verdict is plain.verdict
    assert large.p_value == pytest.approx(plain.p_value, rel=1e-9)


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
@pytest.mark.parametrize("between", [0.01, 0.02, 0.03])
def test_the_noise_between_runs_causes_no_false_change(between: float, runs: int) -> None:
    rng = np.random.default_rng([8, runs, round(100 * between)])
    found = [
        compare_unpaired(
            *(draw_runs(rng, runs, 10, between=between, within=0.01) for _ in range(2)), **RULES
        )
        for _ in range(400)
    ]
    claims = sum(each.verdict in CLAIMS for each in found) / len(found)
    if runs < FEWEST_RUNS:
        assert claims == 0
        # The test of single trials, which only marks a difference, would often be wrong.
        assert sum(each.unconfirmed for each in found) / len(found) > 0.2
    else:
        changed = sum(each.verdict in CLAIMS - {Verdict.EQUIVALENT} for each in found)
        assert changed / len(found) <= 0.05
        assert sum(each.low <= 0 <= each.high for each in found) / len(found) >= 0.93
