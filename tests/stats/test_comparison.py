import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from orchestrator.stats.comparison import Verdict, compare_blocks
from orchestrator.stats.interim import compute_next_analysis
from orchestrator.stats.signed_rank import estimate_hodges_lehmann

NOISE = (0.004, -0.006, 0.001, 0.008, -0.007, 0.002, -0.003, 0.005, -0.004, 0.0)


def pair(change, n, *, noise=NOISE, base=1000.0):
    """n blocks whose contender differs by `change`, give or take the noise."""
    baseline = [base * (1 + 0.05 * math.sin(block)) for block in range(n)]
    contender = [
        value * (1 + change) * math.exp(noise[block % len(noise)])
        for block, value in enumerate(baseline)
    ]
    return baseline, contender


def compare(baseline, contender, better="higher", margin=0.03, **settings):
    return compare_blocks(baseline, contender, better=better, margin=margin, **settings)


@pytest.mark.parametrize(
    ("change", "better", "verdict"),
    [
        (+0.10, "higher", Verdict.IMPROVED),
        (+0.10, "lower", Verdict.REGRESSED),
        (-0.10, "higher", Verdict.REGRESSED),
        (-0.10, "lower", Verdict.IMPROVED),
        (+0.02, "higher", Verdict.TRIVIAL),
        (-0.02, "higher", Verdict.TRIVIAL),
        (0.0, "higher", Verdict.EQUIVALENT),
        (0.0, "lower", Verdict.EQUIVALENT),
    ],
)
def test_each_change_has_its_verdict(change, better, verdict):
    assert compare(*pair(change, 10), better).verdict == verdict


@pytest.mark.parametrize("change", [0.025, -0.025])
def test_a_real_difference_of_open_size_is_not_decided(change):
    """Its interval reaches beyond the margin, so nothing proves that it is small."""
    result = compare(*pair(change, 10, noise=[2 * noise for noise in NOISE]))
    assert result.p_value < 0.001
    assert abs(result.change) < 0.03 < max(abs(result.low), abs(result.high))
    assert result.verdict == Verdict.INCONCLUSIVE
    assert result.reasons[0].startswith("a real difference, but its size is not decided")
    longer = compare(*pair(change, 60, noise=[2 * noise for noise in NOISE]))
    assert longer.verdict == Verdict.TRIVIAL


def test_a_noisy_comparison_is_inconclusive():
    result = compare(*pair(0.0, 10, noise=[40 * noise for noise in NOISE]))
    assert result.verdict == Verdict.INCONCLUSIVE
    assert "proves neither" in result.reasons[0]


def test_values_match_a_paired_t_test_on_logs():
    baseline, contender = pair(0.05, 8)
    result = compare(baseline, contender)
    logs = np.log(contender) - np.log(baseline)
    reference = stats.ttest_1samp(logs, 0)
    low, high = reference.confidence_interval(0.95)
    assert result.p_value == pytest.approx(reference.pvalue)
    assert result.change == pytest.approx(math.exp(logs.mean()) - 1)
    assert (result.low, result.high) == (
        pytest.approx(math.exp(low) - 1),
        pytest.approx(math.exp(high) - 1),
    )
    assert result.baseline == pytest.approx(stats.gmean(baseline))
    assert result.contender == pytest.approx(stats.gmean(contender))


def test_the_p_value_of_equivalence_is_that_of_two_one_sided_tests():
    baseline, contender = pair(0.01, 8)
    logs = np.log(contender) - np.log(baseline)
    above = stats.ttest_1samp(logs, math.log(0.97), alternative="greater").pvalue
    below = stats.ttest_1samp(logs, math.log(1.03), alternative="less").pvalue
    assert compare(baseline, contender).equivalence_p == pytest.approx(max(above, below))


@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_fewer_than_five_blocks_have_values_without_a_verdict(blocks):
    result = compare(*pair(-0.5, blocks))
    assert result.verdict == Verdict.INCONCLUSIVE
    assert result.reasons == (f"{blocks} of at least 5 blocks",)
    assert result.low < result.change < result.high < 0


def test_a_single_block_has_a_change_and_no_interval():
    result = compare([100.0], [90.0])
    assert result.change == pytest.approx(-0.1)
    assert (result.low, result.high, result.p_value, result.half_width) == (None,) * 4


def test_no_blocks_are_inconclusive():
    result = compare([], [])
    assert (result.verdict, result.blocks, result.change) == (Verdict.INCONCLUSIVE, 0, None)


def test_a_block_with_a_missing_value_is_excluded():
    baseline, contender = pair(-0.1, 8)
    clean = compare(baseline[2:], contender[2:])
    result = compare([None, *baseline[1:]], [contender[0], None, *contender[2:]])
    assert (result.blocks, result.excluded) == (6, 2)
    assert (result.change, result.p_value) == (clean.change, clean.p_value)


def test_values_without_spread_have_a_verdict():
    same = compare([5.0] * 5, [5.0] * 5)
    assert (same.verdict, same.change, same.p_value) == (Verdict.EQUIVALENT, 0.0, 1.0)
    worse = compare([5.0] * 5, [4.0] * 5)
    assert (worse.verdict, worse.p_value) == (Verdict.REGRESSED, 0.0)
    assert worse.change == pytest.approx(-0.2)


def test_a_zero_has_no_ratio():
    result = compare([0.0, 1, 1, 1, 1], [1.0] * 5)
    assert (result.verdict, result.change) == (Verdict.INCONCLUSIVE, None)
    assert result.reasons == ("a value of zero has no ratio",)


def test_zeros_alone_do_not_differ():
    result = compare([0.0] * 5, [0.0] * 5)
    assert (result.verdict, result.change, result.p_value) == (Verdict.EQUIVALENT, 0.0, 1.0)
    assert (result.baseline, result.contender) == (0.0, 0.0)
    assert compare([0.0] * 4, [0.0] * 4).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("baseline", "contender", "settings", "message"),
    [
        ([1.0], [], {}, "1 baseline values but 0"),
        ([-1.0], [1.0], {}, "not negative"),
        ([math.nan], [1.0], {}, "finite"),
        ([1.0], [math.inf], {}, "finite"),
        ([1.0], [1.0], {"margin": 0}, "margin 0"),
        ([1.0], [1.0], {"margin": 3}, "margin 3"),
        ([1.0], [1.0], {"better": "up"}, "better 'up'"),
    ],
)
def test_invalid_values_are_refused(baseline, contender, settings, message):
    with pytest.raises(ValueError, match=message):
        compare(baseline, contender, **settings)


blocks = st.lists(st.tuples(st.floats(1e-6, 1e9), st.floats(-0.3, 0.3)), min_size=2, max_size=12)


@given(blocks, st.sampled_from(["higher", "lower"]))
def test_the_verdict_never_contradicts_the_values(drawn, better):
    baseline = [base for base, _ in drawn]
    result = compare(baseline, [base * math.exp(shift) for base, shift in drawn], better)
    assert result.low <= result.change <= result.high
    if result.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        assert result.p_value < 0.015
        assert abs(result.change) > 0.03
        assert (result.verdict == Verdict.IMPROVED) == ((result.change > 0) == (better == "higher"))
    if result.verdict == Verdict.TRIVIAL:
        assert result.p_value < 0.015
    if result.verdict in (Verdict.TRIVIAL, Verdict.EQUIVALENT):
        assert result.equivalence_p < 0.02
        assert -0.03 < result.low <= result.high < 0.03


@given(blocks)
def test_the_unit_of_a_metric_does_not_matter(drawn):
    baseline = [base for base, _ in drawn]
    contender = [base * math.exp(shift) for base, shift in drawn]
    result = compare(baseline, contender)
    scaled = compare([1e-3 * value for value in baseline], [1e-3 * value for value in contender])
    assert scaled.change == pytest.approx(result.change, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("n", [7, 10, 15])
def test_the_robust_interval_inverts_the_signed_rank_test(n):
    differences = np.random.default_rng(n).normal(0.1, 1, n)
    centre = estimate_hodges_lehmann(differences.tolist())
    assert centre.low < centre.estimate < centre.high

    def p_value(shift):
        return stats.wilcoxon(differences - shift, method="exact").pvalue

    for inside, outside in (
        (centre.low + 1e-9, centre.low - 1e-9),
        (centre.high - 1e-9, centre.high + 1e-9),
    ):
        assert p_value(inside) > 0.05 >= p_value(outside)


def test_the_robust_estimate_needs_seven_differences():
    with pytest.raises(ValueError, match="at least 7"):
        estimate_hodges_lehmann([0.1] * 6)
    assert compare(*pair(0.1, 6)).robust is None
    assert compare(*pair(0.1, 7)).robust is not None


def test_a_clear_change_is_not_fragile():
    result = compare(*pair(-0.1, 10))
    assert result.robust.change == pytest.approx(-0.1, abs=0.005)
    assert not result.fragile


def test_a_verdict_that_depends_on_one_block_is_fragile():
    inside_the_margin = [0.0285, 0.0290, 0.0288, 0.0291, 0.0287, 0.0289]
    logs = [*inside_the_margin, 0.06]
    result = compare([100.0] * 7, [100 * math.exp(one) for one in logs])
    assert result.verdict == Verdict.IMPROVED
    assert result.robust.change < 0.03 < result.change
    assert result.fragile
    assert result.reasons == ("fragile: the robust estimate leads to another verdict",)
    assert compute_next_analysis(result) == 10


def test_interim_analyses_are_planned():
    few, sure, noisy = (
        compare(*pair(0.0, 4)),
        compare(*pair(0.0, 10)),
        compare(*pair(0.0, 10, noise=[40 * noise for noise in NOISE])),
    )
    assert compute_next_analysis(few) == 5
    assert compute_next_analysis(sure) is None
    assert compute_next_analysis(noisy) == 15
    assert compute_next_analysis(noisy, planned=(5, 10)) is None
