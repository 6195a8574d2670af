"""How often a verdict is wrong after one of many further runs of the same two commits.

All verdicts are those of the shipped functions, on generated blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.multiple_testing import judge_matrix
from orchestrator.stats.needed_blocks import DecisionRule, estimate_needed_blocks
from orchestrator.stats.order_effect import compute_block_means
from orchestrator.stats.paired import compute_paired_test
from orchestrator.stats.power import MOST_BLOCKS, compute_block_sigma
from perf.detection.simulated_trials import Floats

MARGIN = 0.03
NOISES = (0.01, 0.015, 0.02, 0.03, 0.04)
UNIMPORTANT = (Verdict.TRIVIAL, Verdict.EQUIVALENT)
#: Further runs of one comparison.
RERUNS = 20
#: The noise of comparisons that are repeated: no difference within the margin can be proven soon.
REPEATED_NOISE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """Shares of comparisons, by the number of blocks of the further runs.

    `claimed`: without a change, that claim one after any of RERUNS further runs. `proven`: with a
    change of just the margin, that are called trivial or equivalent after any of them.
    """

    claimed: Mapping[str, float]
    proven: Mapping[str, float]


def measure_error_rates(number: int, seed: int) -> ErrorRates:
    """Return the rates of `number` runs each."""
    rng = np.random.default_rng([seed, 11])
    return ErrorRates(
        claimed={steps: measure_reruns(rng, number, 0.0, REPEATED_NOISE, steps) for steps in STEPS},
        proven={
            steps: max(measure_reruns(rng, number, MARGIN, noise, steps) for noise in NOISES)
            for steps in STEPS
        },
    )


def _plan_fixed(result: Comparison, rule: DecisionRule) -> int:
    return INTERIM_BLOCKS[0]


def _plan_doubled(result: Comparison, rule: DecisionRule) -> int:
    return min(MOST_BLOCKS, result.blocks)


def _plan_needed(result: Comparison, rule: DecisionRule) -> int:
    (needed,) = estimate_needed_blocks([result], rule)
    assert needed is not None
    return min(MOST_BLOCKS, needed.count_further(result.blocks).probable)


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
