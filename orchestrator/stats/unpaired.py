"""Comparison of two sides that share no block: Welch's test on the means of their runs.

It cannot separate a change of the code from a change of the machine, and its reasons include that.
It is the last resort, if no run measured both sides together.

Trials of one run share the state of the machine, so they are no independent evidence about the
commit: the run is the unit of the test. With few runs, the noise between runs is not known. Then
nothing is concluded, and a difference among the trials is only marked as not confirmed.
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
    is_changed,
)
from orchestrator.stats.paired import FEWEST_BLOCKS, PairedTest, compute_mean_test

#: The first reason of each such comparison.
UNPAIRED = "measured at different times, so machine drift may be part of the difference"
#: In the place of a verdict of a difference that is not confirmed.
UNCONFIRMED = "differs, not confirmed"
#: With fewer runs of a side, the noise between runs is not known.
FEWEST_RUNS = 3

#: The logs of the values of each run.
_Side = list[NDArray[np.float64]]


def compare_unpaired(
    baseline: Sequence[Sequence[float]],
    contender: Sequence[Sequence[float]],
    *,
    better: Better,
    margin: float,
    alpha: float = ALPHA,
    equivalence_alpha: float = EQUIVALENCE_ALPHA,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare two sides, given the values of the trials of each of their runs.

    The verdicts are those of `compare_blocks`, from a Welch test (Welch 1947) on the mean logs of
    the runs. It needs FEWEST_RUNS runs and 5 trials on each side. With fewer runs, the comparison
    is inconclusive and has neither interval nor p value. It is `unconfirmed` if the trials differ.
    The first reason is always `UNPAIRED`. ValueError as for `compare_blocks`.
    """
    check_parameters(better, margin)
    before, after = _collect_values(baseline), _collect_values(contender)
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
    sides = _take_logs(baseline), _take_logs(contender)
    known = _fill_means(unknown, sides)
    if known.blocks < FEWEST_BLOCKS:
        why = build_reasons(known.blocks, known.verdict, margin, None, False, unit="trials")
        return replace(known, reasons=(UNPAIRED, *why))
    if min(map(len, sides)) < FEWEST_RUNS:
        return _mark_unconfirmed(known, sides, alpha)
    return _judge_runs(known, sides, alpha, equivalence_alpha)


def _fill_means(unknown: Comparison, sides: tuple[_Side, _Side]) -> Comparison:
    first, second = (float(np.mean([run.mean() for run in side])) for side in sides)
    return replace(
        unknown,
        baseline=math.exp(first),
        contender=math.exp(second),
        change=as_change(second - first),
    )


def _mark_unconfirmed(known: Comparison, sides: tuple[_Side, _Side], alpha: float) -> Comparison:
    before, after = (np.concatenate(side) for side in sides)
    p_value = _test_means(known, before, after).p_value
    differs = p_value is not None and p_value < alpha
    runs = " and ".join(str(len(side)) for side in sides)
    why = f"{runs} of at least {FEWEST_RUNS} runs on each side: the noise between runs is not known"
    return replace(
        known,
        reasons=(UNPAIRED, f"{UNCONFIRMED}: {why}" if differs else why),
        unconfirmed=differs,
    )


def _judge_runs(
    known: Comparison, sides: tuple[_Side, _Side], alpha: float, equivalence_alpha: float
) -> Comparison:
    before, after = (np.array([run.mean() for run in side]) for side in sides)
    test = _test_means(known, before, after)
    verdict = derive_verdict(test, known.better, alpha, equivalence_alpha)
    half_width = test.half_width or 0.0
    changed = is_changed(test, alpha)
    why = build_reasons(
        test.n, verdict, known.margin, half_width, False, changed=changed, unit="trials"
    )
    return replace(
        known,
        verdict=verdict,
        reasons=(UNPAIRED, *why),
        low=as_change(test.mean - half_width),
        high=as_change(test.mean + half_width),
        p_value=test.p_value,
        equivalence_p=test.equivalence_p,
        half_width=as_change(half_width),
        degrees=test.degrees,
    )


def _test_means(
    known: Comparison, before: NDArray[np.float64], after: NDArray[np.float64]
) -> PairedTest:
    error, degrees = compute_welch(before, after)
    difference = float(after.mean() - before.mean())
    return compute_mean_test(
        known.blocks,
        difference,
        error,
        degrees,
        margin=known.margin,
        confidence=known.confidence,
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


def _collect_values(runs: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    values = np.array([value for run in runs for value in run], dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("values to compare must be finite and not negative")
    return values


def _take_logs(runs: Sequence[Sequence[float]]) -> _Side:
    return [np.log(np.array(run, dtype=np.float64)) for run in runs if run]


def _find_obstacles(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[str, ...]:
    if not before.size or not after.size:
        return ("one side has no value",)
    return ("a value of zero has no ratio",) if min(before.min(), after.min()) == 0 else ()
