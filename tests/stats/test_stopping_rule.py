"""A run until decided: its error rate and its cost."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import Verdict, compare_blocks
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
    PENALTY,
    find_analysis_after,
    is_analysis_due,
)
from orchestrator.stats.needed_blocks import DecisionRule, estimate_needed_blocks
from orchestrator.stats.stopping import (
    SCREEN_BLOCKS,
    CaseData,
    compute_belief_threshold,
    decide_cases,
    estimate_blocks_left,
)

CHANGED = {Verdict.REGRESSED, Verdict.IMPROVED, Verdict.TRIVIAL}
UNIMPORTANT = {Verdict.TRIVIAL, Verdict.EQUIVALENT}
CLAIMS = {Verdict.REGRESSED, Verdict.IMPROVED}
MARGIN = 0.03


def trials(rng, cases, *, noise, change=0.0, blocks=INTERIM_BLOCKS[-1]):
    """Values of `cases` cases: (baseline, contender), each cases × blocks; two trials a block."""
    drift = np.cumsum(rng.normal(0, 0.02, (cases, blocks)), axis=1)
    logs = drift + np.reshape(np.log1p(change), (-1, 1))
    before = 1000 * np.exp(drift + rng.normal(0, noise, (cases, blocks)))
    return before, 1000 * np.exp(logs + rng.normal(0, noise, (cases, blocks)))


def build_case_data(before, after, blocks, **changes):
    cell = compare_blocks(
        before[:blocks].tolist(),
        after[:blocks].tolist(),
        better="higher",
        margin=MARGIN,
        alpha=INTERIM_ALPHA,
        equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA,
    )
    return CaseData(**{"blocks": blocks, "excluded": 0, "comparisons": (cell,), **changes})


def measured(values, *, matrix=False, screen=False):
    """What the rule ends with: for each case its decision, p value, and blocks.

    The cases are those of one run if `matrix`, else each is a run of its own.
    """
    before, after = values
    open_, ended = set(range(len(before))), {}
    for analysis in INTERIM_BLOCKS:
        seen = {case: build_case_data(before[case], after[case], analysis) for case in open_}
        if matrix:
            known = [end[1] for case, end in ended.items() if case not in open_]
            decisions = decide_cases(
                seen, elsewhere=known, cells=len(before), screen=screen, estimate=False
            )
        else:
            decisions = {
                case: decide_cases({0: each}, estimate=False)[0] for case, each in seen.items()
            }
        for case, decision in decisions.items():
            ended[case] = (decision, seen[case].p_values[0], analysis)
            if decision.decided or decision.futile:
                open_.discard(case)
    return [ended[case] for case in sorted(ended)]


def share(ends, wanted):
    return sum(end[0].verdict in wanted for end in ends) / len(ends)


def mean_blocks(ends):
    return sum(end[2] for end in ends) / len(ends)


@pytest.mark.parametrize("noise", [pytest.param(0.02, marks=pytest.mark.slow), 0.1])
def test_five_interim_analyses_have_under_five_percent_false_positives(noise):
    """With noise of 10 % nothing is ever proven equivalent, so all five analyses are taken."""
    values = trials(np.random.default_rng(81), 3_000, noise=noise)
    ends = measured(values)
    assert share(ends, CHANGED) <= 0.04


@pytest.mark.parametrize("change", [MARGIN, pytest.param(-MARGIN, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.015, pytest.param(0.025, marks=pytest.mark.slow)])
def test_five_interim_analyses_rarely_call_the_margin_unimportant(change, noise):
    ends = measured(trials(np.random.default_rng(82), 1_000, noise=noise, change=change))
    assert share(ends, UNIMPORTANT) <= 0.05


@pytest.mark.parametrize(
    ("noise", "change", "right", "at_least", "blocks"),
    [
        (0.01, 0.0, {Verdict.EQUIVALENT}, 0.95, 6),
        (0.01, -0.05, {Verdict.REGRESSED}, 0.99, 5.5),
        (0.02, 0.0, {Verdict.EQUIVALENT}, 0.93, 12),
        (0.02, -0.05, {Verdict.REGRESSED}, 0.93, 7.5),
        (0.02, 0.10, {Verdict.IMPROVED}, 0.99, 5.5),
        (0.03, 0.10, {Verdict.IMPROVED}, 0.99, 6.5),
    ],
)
def test_a_typical_run_needs_far_less_than_twenty_blocks(noise, change, right, at_least, blocks):
    """And concludes what is true about as often as twenty blocks of all would (at 0.05)."""
    values = trials(np.random.default_rng(83), 600, noise=noise, change=change)
    ends = measured(values)
    fixed = [
        compare_blocks(
            before.tolist(),
            after.tolist(),
            better="higher",
            margin=MARGIN,
            alpha=0.05,
            equivalence_alpha=0.05,
        ).verdict
        for before, after in zip(*values, strict=True)
    ]
    assert mean_blocks(ends) <= blocks
    assert share(ends, right) >= at_least
    assert share(ends, right) >= sum(each in right for each in fixed) / len(fixed) - 0.04


def discoveries(screen, *, noise=0.03, cases=200, changed=20, runs=20):
    """Over runs of a matrix in which some cases are 5 % faster: false discovery rate, power,
    blocks a case."""
    rng = np.random.default_rng(84)
    change = np.where(np.arange(cases) < changed, 0.05, 0.0)
    rates, powers, blocks = [], [], []
    for _ in range(runs):
        ends = measured(trials(rng, cases, noise=noise, change=change), matrix=True, screen=screen)
        claimed = [end[0].decided and end[0].verdict in CLAIMS for end in ends]
        rates.append(sum(claimed[changed:]) / max(1, sum(claimed)))
        powers.append(sum(claimed[:changed]) / max(1, changed))
        blocks.append(mean_blocks(ends))
    return tuple(float(np.mean(each)) for each in (rates, powers, blocks))


def test_claims_in_a_matrix_are_true_in_nineteen_of_twenty() -> None:
    false, power, blocks = discoveries(screen=False, runs=8)
    assert false <= 0.05
    assert power >= 0.8
    assert blocks <= 18


def test_screening_finds_most_changes_with_half_the_blocks() -> None:
    """METHODOLOGY: a flat 10 blocks find 0.16 of it, screening with fresh blocks 0.66 with 9.5."""
    false, power, blocks = discoveries(screen=True, runs=12)
    assert false <= 0.05
    assert power >= 0.66
    assert blocks <= 9.5


@pytest.mark.parametrize("screen", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_matrix_without_changes_has_no_claims(screen) -> None:
    rng = np.random.default_rng(85)
    wrong = 0
    for _ in range(40):
        ends = measured(trials(rng, 20, noise=0.05), matrix=True, screen=screen)
        wrong += any(end[0].decided and end[0].verdict in CLAIMS for end in ends)
    assert wrong <= 5


def test_the_order_of_cases_does_not_matter() -> None:
    before, after = trials(np.random.default_rng(86), 12, noise=0.02, change=-0.04)
    seen = {case: build_case_data(before[case], after[case], 10) for case in range(12)}
    turned = dict(reversed(seen.items()))
    assert decide_cases(seen, cells=40) == decide_cases(turned, cells=40)


def test_a_change_among_many_cases_needs_more_evidence() -> None:
    before, after = trials(np.random.default_rng(13), 1, noise=0.03, change=-0.05)
    seen = build_case_data(before[0], after[0], 10)
    (p_value,) = seen.p_values
    assert 0.0005 < p_value < INTERIM_ALPHA
    alone = decide_cases({"one": seen})["one"]
    assert (alone.decided, alone.verdict, alone.obstacle) == (True, Verdict.REGRESSED, "")
    among = decide_cases({"one": seen}, cells=500)["one"]
    assert (among.decided, among.verdict) == (False, Verdict.REGRESSED)
    assert "chance" in among.obstacle
    assert among.needed is not None
    assert 10 < among.needed.probable < 40
    helped = decide_cases({"one": seen}, cells=500, elsewhere=[1e-9] * 400)["one"]
    assert helped.decided


def test_significance_follows_benjamini_and_hochberg() -> None:
    assert compute_belief_threshold([], 1) == pytest.approx(INTERIM_ALPHA)
    assert compute_belief_threshold([0.5], 10) == pytest.approx(0.05 / 10 / PENALTY)
    assert compute_belief_threshold([1e-6, 1e-6, 0.5], 10) == pytest.approx(0.05 * 3 / 10 / PENALTY)
    assert compute_belief_threshold([1e-6] * 4, 4) == pytest.approx(INTERIM_ALPHA)


def test_a_trivial_change_among_many_cases_is_only_equivalent() -> None:
    before = np.full(10, 1000.0)
    after = before * np.exp(0.006 + 0.005 * np.linspace(-1, 1, 10))
    seen = build_case_data(before, after, 10)
    assert seen.comparisons[0].verdict is Verdict.TRIVIAL
    assert decide_cases({0: seen})[0].verdict is Verdict.TRIVIAL
    among = decide_cases({0: seen}, cells=600)[0]
    assert (among.decided, among.verdict, among.cell) == (True, Verdict.EQUIVALENT, 0)


def test_all_metrics_of_a_case_must_be_decided() -> None:
    same = [1000.0, 1001.0, 999.0, 1000.0, 1002.0]
    noisy = [1000.0, 1080.0, 950.0, 1050.0, 970.0]
    sure = build_case_data(np.array(same), np.array(same[::-1]), 5)
    open_ = build_case_data(np.array(same), np.array(noisy), 5)
    both = CaseData(blocks=5, excluded=0, comparisons=(*sure.comparisons, *open_.comparisons))
    assert decide_cases({0: sure})[0].decided
    decision = decide_cases({0: both})[0]
    assert (decision.decided, decision.verdict, decision.cell) == (False, Verdict.INCONCLUSIVE, 1)
    rule = DecisionRule(claim_alpha=0.05 / 2 / PENALTY, equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA)
    assert [decision.needed] == estimate_needed_blocks(open_.comparisons, rule)


def test_too_many_excluded_blocks_decide_nothing() -> None:
    same = np.array([1000.0, 1001.0, 999.0, 1000.0, 1002.0])
    decision = decide_cases({0: build_case_data(same, same[::-1], 5, excluded=4)})[0]
    assert not decision.decided
    assert decision.obstacle.startswith("4 blocks are excluded")
    assert decide_cases({0: build_case_data(same, same[::-1], 5, excluded=2)})[0].decided


def test_a_case_without_any_primary_metric_is_never_decided() -> None:
    decision = decide_cases({0: CaseData(blocks=5, excluded=0, comparisons=())}, screen=True)[0]
    assert (decision.decided, decision.cell, decision.needed) == (False, None, None)


def test_screening_waits_for_seven_blocks_and_keeps_what_hints_at_a_change() -> None:
    before, after = trials(np.random.default_rng(7), 60, noise=0.05)
    for blocks in (5, SCREEN_BLOCKS):
        seen = {case: build_case_data(before[case], after[case], blocks) for case in range(60)}
        decisions = decide_cases(seen, cells=60, screen=True)
        dropped = {case for case, decision in decisions.items() if decision.futile}
        unlikely = {case for case, each in seen.items() if each.p_values[0] >= 0.1}
        assert dropped == (unlikely if blocks == SCREEN_BLOCKS else set())


@pytest.mark.parametrize(
    ("blocks", "analysed_at", "last", "due"),
    [
        (4, 0, False, False),
        (4, 0, True, False),
        (5, 0, False, True),
        (5, 5, False, False),
        (6, 5, False, False),
        (7, 5, False, True),
        (8, 5, False, True),
        (9, 7, False, False),
        (9, 7, True, True),
        (18, 15, True, True),
        (20, 15, False, True),
        (20, 20, True, False),
        (25, 20, True, False),
    ],
)
def test_an_interim_analysis_is_due_once_at_each_planned_number_of_blocks(
    blocks, analysed_at, last, due
):
    assert is_analysis_due(blocks, analysed_at, last=last) is due


def test_interim_analyses_follow_in_order() -> None:
    assert [find_analysis_after(blocks) for blocks in (0, 5, 6, 19, 20)] == [5, 7, 7, 20, None]


@pytest.mark.parametrize(
    ("done", "analysed_at", "most", "needed", "left"),
    [
        (0, 0, 20, None, (5, 10, 20)),
        (3, 0, 17, None, (2, 7, 17)),
        (5, 5, 15, 9, (2, 5, 15)),
        (5, 5, 15, 60, (2, 15, 15)),
        (15, 15, 5, 16, (5, 5, 5)),
        (0, 0, 3, None, (3, 3, 3)),
        (12, 10, 0, 15, (0, 0, 0)),
    ],
)
def test_remaining_blocks_are_a_range(done, analysed_at, most, needed, left):
    remaining = estimate_blocks_left(done=done, analysed_at=analysed_at, most=most, needed=needed)
    assert (remaining.least, remaining.typical, remaining.most) == left


def test_degenerate_values_give_no_wrong_decision() -> None:
    zeros = np.zeros(5)
    nothing = decide_cases({0: build_case_data(zeros, zeros, 5)})[0]
    assert (nothing.decided, nothing.verdict) == (True, Verdict.EQUIVALENT)
    equal = np.full(7, 3.0)
    decision = decide_cases({0: build_case_data(equal, equal, 7)})[0]
    assert (decision.decided, decision.verdict) == (True, Verdict.EQUIVALENT)
    assert math.isclose(compute_belief_threshold([], 0), INTERIM_ALPHA)


def test_a_metric_with_a_zero_does_not_keep_its_case_open() -> None:
    """No number of blocks gives it a ratio. Its case has no other verdict than inconclusive."""
    ones, some = np.ones(5), np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    zero = build_case_data(ones, some, 5).comparisons
    equal = build_case_data(ones, ones, 5).comparisons
    noisy = build_case_data(ones, np.exp([-0.1, 0.1, 0.05, -0.05, 0.02]), 5).comparisons
    for others, decided in ((equal, True), (noisy, False)):
        data = CaseData(blocks=5, excluded=0, comparisons=(*zero, *others))
        decision = decide_cases({0: data})[0]
        assert (decision.decided, decision.verdict) == (decided, Verdict.INCONCLUSIVE)
