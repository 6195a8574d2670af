"""How often verdicts are wrong: changes of just the margin, runs of many cases, and repeated runs.

All verdicts are those of the shipped functions, on generated blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import (
    ALPHA,
    CONFIDENCE,
    EQUIVALENCE_ALPHA,
    Comparison,
    Verdict,
    as_change,
    derive_verdict,
)
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
)
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import judge_matrix
from orchestrator.stats.needed_blocks import DecisionRule, estimate_needed_blocks
from orchestrator.stats.order_effect import compute_block_means
from orchestrator.stats.paired import compute_paired_test
from orchestrator.stats.power import MOST_BLOCKS, compute_block_sigma
from orchestrator.stats.stopping import CaseData, decide_cases

Floats = NDArray[np.float64]

MARGIN = 0.03
NOISES = (0.01, 0.015, 0.02, 0.03, 0.04)
CASES, METRICS = 20, ("rate", "p50", "cpu")
UNIMPORTANT = (Verdict.TRIVIAL, Verdict.EQUIVALENT)
CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)
#: Further runs of one comparison.
RERUNS = 20
#: The noise of comparisons that are repeated: no difference within the margin can be proven soon.
REPEATED_NOISE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """Shares of runs, by the noise of a trial.

    `unimportant`: of one metric with a change of just the margin, that call it trivial or
    equivalent. `matrix`: without a change, with 20 cases of 3 metrics, that name any change.
    `claimed`: comparisons without a change that claim one after any of RERUNS further runs.
    `proven`: with a change of just the margin, that are called unimportant after any of them.
    """

    unimportant: Mapping[float, float]
    matrix: Mapping[float, float]
    claimed: Mapping[str, float]
    proven: Mapping[str, float]


def measure_error_rates(number: int, seed: int) -> ErrorRates:
    """Return the rates of `number` runs each."""
    rng = np.random.default_rng([seed, 11])
    return ErrorRates(
        unimportant={noise: measure_unimportant(rng, number, noise) for noise in NOISES},
        matrix={noise: measure_matrix(rng, max(1, number // 5), noise) for noise in NOISES},
        claimed={steps: measure_reruns(rng, number, 0.0, REPEATED_NOISE, steps) for steps in STEPS},
        proven={
            steps: max(measure_reruns(rng, number, MARGIN, noise, steps) for noise in NOISES)
            for steps in STEPS
        },
    )


def measure_unimportant(rng: np.random.Generator, number: int, noise: float) -> float:
    """Return the share of runs until decided that call a change of the margin unimportant."""
    ends = run_until_decided(draw(rng, (number, 1, 1), noise, MARGIN), alone=True)
    return sum(each.verdict in UNIMPORTANT for (cell,) in ends for each in cell) / number


def measure_matrix(rng: np.random.Generator, number: int, noise: float) -> float:
    """Return the share of runs until decided, without a change, that name a change."""
    ends = run_until_decided(draw(rng, (number, CASES, len(METRICS)), noise, 0.0))
    spending = {str(case): Spending(analyses=len(INTERIM_BLOCKS)) for case in range(CASES)}
    wrong = 0
    for run in ends:
        cases = {str(at): dict(zip(METRICS, cells, strict=True)) for at, cells in enumerate(run)}
        primary = dict.fromkeys(cases, METRICS)
        matrix = judge_matrix(cases, primary=primary, spending=spending)
        wrong += any(each in (*CLAIMS, Verdict.TRIVIAL) for each in matrix.cells.values())
    return wrong / number


def draw(
    rng: np.random.Generator, shape: tuple[int, int, int], noise: float, change: float
) -> Floats:
    """Return the log ratios of blocks: run × case × metric × block."""
    blocks = (*shape, INTERIM_BLOCKS[-1])
    return rng.normal(math.log1p(change), compute_block_sigma(noise), blocks)


def run_until_decided(logs: Floats, *, alone: bool = False) -> list[list[list[Comparison]]]:
    """Return the last comparisons of each run: run → case → metric.

    `alone`: of undecided cases of one metric, the last verdict counts as it is.
    """
    runs, cases, _, _ = logs.shape
    open_ = [set(range(cases)) for _ in range(runs)]
    ends: list[dict[int, list[Comparison]]] = [{} for _ in range(runs)]
    for blocks in INTERIM_BLOCKS:
        places = [(run, case) for run in range(runs) for case in sorted(open_[run])]
        for (run, case), cells in zip(places, _compare(logs, places, blocks), strict=True):
            ends[run][case] = cells
        for run in range(runs):
            _close_decided(open_[run], ends[run], blocks, logs.shape[2])
    return [[end[case] for case in range(cases)] for end in ends]


def _compare(
    logs: Floats, places: Sequence[tuple[int, int]], blocks: int
) -> Iterator[list[Comparison]]:
    cells = [
        _build_input(logs[run, case, metric, :blocks])
        for run, case in places
        for metric in range(logs.shape[2])
    ]
    results = compare_many(cells, alpha=INTERIM_ALPHA, equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA)
    step = logs.shape[2]
    return (results[at : at + step] for at in range(0, len(results), step))


def _build_input(logs: Floats) -> ComparisonInput:
    """Return the input of a comparison whose blocks have these log ratios."""
    return ComparisonInput(
        baseline=[1.0] * len(logs),
        contender=np.exp(logs).tolist(),
        better="lower",
        margin=MARGIN,
    )


def _close_decided(
    open_: set[int], ends: Mapping[int, list[Comparison]], blocks: int, metrics: int
) -> None:
    seen = {
        case: CaseData(blocks=blocks, excluded=0, comparisons=tuple(ends[case])) for case in open_
    }
    elsewhere = [
        each.p_value or 0.0 for case, end in ends.items() if case not in open_ for each in end
    ]
    decisions = decide_cases(seen, elsewhere=elsewhere, cells=len(ends) * metrics)
    open_ -= {case for case, decision in decisions.items() if decision.decided}


def _plan_fixed(result: Comparison, rule: DecisionRule) -> int:
    return INTERIM_BLOCKS[0]


def _plan_doubled(result: Comparison, rule: DecisionRule) -> int:
    return min(MOST_BLOCKS, result.blocks)


def _plan_needed(result: Comparison, rule: DecisionRule) -> int:
    (needed,) = estimate_needed_blocks([result], rule)
    return min(MOST_BLOCKS, (needed or 0) - result.blocks)


#: The blocks of the next run: five each, the number of the present ones, and the estimated number.
STEPS = {"five": _plan_fixed, "doubled": _plan_doubled, "estimated": _plan_needed}


def measure_reruns(
    rng: np.random.Generator, number: int, change: float, noise: float, steps: str
) -> float:
    """Return the share of comparisons with a false verdict after one of RERUNS further runs.

    Each is measured until it is decided. Without a change, any p value that suffices for a claim is
    false; with one of the margin, a verdict that calls it unimportant.
    """
    wrong = (_is_once_wrong(rng, change, noise, steps) for _ in range(number))
    return sum(wrong) / number


def _is_once_wrong(rng: np.random.Generator, change: float, noise: float, steps: str) -> bool:
    mean, sigma = math.log1p(change), compute_block_sigma(noise)
    logs = rng.normal(mean, sigma, INTERIM_BLOCKS[0])
    for run in range(1, RERUNS + 2):
        spending = Spending(runs=run)
        result = _compare_logs(logs)
        matrix = judge_matrix({"": {"": result}}, primary={"": ("",)}, spending={"": spending})
        if not change and (result.p_value or 0.0) < min(ALPHA, spending.alpha):
            return True
        if matrix.verdict is not Verdict.INCONCLUSIVE:
            return bool(change) and matrix.verdict in UNIMPORTANT
        following = spending.after_another_run()
        rule = DecisionRule(
            claim_alpha=min(ALPHA, following.alpha),
            equivalence_alpha=following.equivalence_alpha,
        )
        logs = np.append(logs, rng.normal(mean, sigma, STEPS[steps](result, rule)))
    return False


def _compare_logs(logs: Floats) -> Comparison:
    """Return what `compare_blocks` does, without the robust estimate, which is slow for many."""
    means = compute_block_means(logs[None], np.zeros((1, logs.size), dtype=np.int64))
    test = compute_paired_test(means, margin=MARGIN, confidence=CONFIDENCE)
    return Comparison(
        verdict=derive_verdict(test, "lower", ALPHA, EQUIVALENCE_ALPHA),
        reasons=(),
        better="lower",
        margin=MARGIN,
        confidence=CONFIDENCE,
        blocks=test.n,
        degrees=test.degrees,
        change=as_change(test.mean),
        p_value=test.p_value,
        equivalence_p=test.equivalence_p,
        half_width=as_change(test.half_width or 0.0),
    )
