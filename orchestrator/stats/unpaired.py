"""Comparison of two sides that share no block: Welch's test on the logs of their trials.

It cannot separate a change of the code from a change of the machine, and its reasons include that.
It is the last resort, if no run measured both sides together.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.comparison import (
    ALPHA,
    CONFIDENCE,
    EQUIVALENCE_ALPHA,
    Better,
    Comparison,
    Verdict,
    as_change,
    build_reasons,
    check_parameters,
    derive_verdict,
)
from orchestrator.stats.paired import compute_mean_test

#: The first reason of each such comparison.
UNPAIRED = "measured at different times, so machine drift may be part of the difference"


def compare_unpaired(
    baseline: Sequence[float | None],
    contender: Sequence[float | None],
    *,
    better: Better,
    margin: float,
    alpha: float = ALPHA,
    equivalence_alpha: float = EQUIVALENCE_ALPHA,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare the trials of two sides, whose numbers may differ.

    The verdicts are those of `compare_blocks`, from a Welch test on logs (Welch 1947) with at least
    5 trials on each side. None values are ignored. Its first reason is always `UNPAIRED`.
    ValueError as for `compare_blocks`.
    """
    check_parameters(better, margin)
    before, after = _drop_unknown(baseline), _drop_unknown(contender)
    unknown = Comparison(
        verdict=Verdict.INCONCLUSIVE,
        reasons=(UNPAIRED, *_find_obstacles(before, after)),
        better=better,
        margin=margin,
        confidence=confidence,
        blocks=min(before.size, after.size),
        paired=False,
    )
    if len(unknown.reasons) > 1:
        return unknown
    return _judge_sides(unknown, np.log(before), np.log(after), alpha, equivalence_alpha)


def _judge_sides(
    unknown: Comparison,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    alpha: float,
    equivalence_alpha: float,
) -> Comparison:
    """Compare the logs of the two sides."""
    n, margin = unknown.blocks, unknown.margin
    first, second = float(before.mean()), float(after.mean())
    known = replace(
        unknown,
        baseline=math.exp(first),
        contender=math.exp(second),
        change=as_change(second - first),
    )
    if n < 2:
        why = build_reasons(n, unknown.verdict, margin, None, False, unit="trials")
        return replace(known, reasons=(UNPAIRED, *why))
    error, degrees = compute_welch(before, after)
    test = compute_mean_test(
        n, second - first, error, degrees, margin=margin, confidence=unknown.confidence
    )
    verdict = derive_verdict(test, unknown.better, alpha, equivalence_alpha)
    half_width = test.half_width or 0.0
    why = build_reasons(n, verdict, margin, half_width, False, unit="trials")
    return replace(
        known,
        verdict=verdict,
        reasons=(UNPAIRED, *why),
        low=as_change(test.mean - half_width),
        high=as_change(test.mean + half_width),
        p_value=test.p_value,
        equivalence_p=test.equivalence_p,
        half_width=as_change(half_width),
        detectable=as_change(test.detectable(alpha) or 0.0),
    )


def compute_welch(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and Welch–Satterthwaite degrees.

    At least two values a side. Without any spread the degrees are those of a pooled test.
    """
    first, second = (float(side.var(ddof=1)) / side.size for side in (one, other))
    both = first + second
    if both == 0:
        return 0.0, one.size + other.size - 2
    share = first / both
    degrees = 1 / (share**2 / (one.size - 1) + (1 - share) ** 2 / (other.size - 1))
    return math.sqrt(both), degrees


def _drop_unknown(values: Sequence[float | None]) -> NDArray[np.float64]:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not np.isfinite(known).all() or (known < 0).any():
        raise ValueError("values to compare must be finite and not negative")
    return known


def _find_obstacles(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[str, ...]:
    if not before.size or not after.size:
        return ("one side has no value",)
    return ("a value of zero has no ratio",) if min(before.min(), after.min()) == 0 else ()
