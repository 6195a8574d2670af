"""Comparison of two commits for one metric of one case: the change and its certainty.

The block (a baseline trial and a contender trial, adjacent in time) is the unit of analysis. In
block i, dᵢ = ln(contenderᵢ / baselineᵢ). The results are a paired t test on d, two one-sided tests
for equivalence, and the Hodges-Lehmann estimate. The estimate is a second opinion that no single
block can dominate. If the order of the trials is known, its effect is removed from d first
(`order_effect`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cli.pitwall.units import format_percent
from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.build_variance import (
    UNKNOWN_BUILDS,
    add_build_variance,
    count_builds,
    find_added_noise,
)
from orchestrator.stats.order_effect import (
    UNKNOWN,
    BlockMeans,
    OrderEffect,
    Orders,
    compute_block_means,
    explain_unseparated,
)
from orchestrator.stats.paired import FEWEST_BLOCKS, PairedTest, compute_paired_test
from orchestrator.stats.signed_rank import FEWEST_PAIRS, estimate_hodges_lehmann
from orchestrator.stats.summary import compute_t_quantile

Better = Literal["higher", "lower"]
#: The alpha of a comparison on its own, with any number of blocks. Interim analyses have a smaller
#: one, `INTERIM_ALPHA`.
ALPHA = 0.015
#: The alpha of the equivalence test, if the true difference is the margin. Interim analyses have a
#: smaller one, `INTERIM_EQUIVALENCE_ALPHA`.
EQUIVALENCE_ALPHA = 0.02
#: The confidence of intervals.
CONFIDENCE = 0.95
#: The exponential of a larger logarithm overflows.
LARGEST_LOG = 700.0


class Verdict(StrEnum):
    """Verdicts in the order of the attention they need.

    Tests of values give five of them. Broken, saturated and fixed are verdicts of cases only: one
    of the sides fails (`block_outcomes`).
    """

    BROKEN = "broken"
    SATURATED = "saturated"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"
    FIXED = "fixed"
    IMPROVED = "improved"
    TRIVIAL = "trivial"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustChange:
    """The Hodges-Lehmann estimate of the change, with its exact interval."""

    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of `compare_blocks`. Changes are contender/baseline − 1; unknown is None.

    `blocks` counts those with both values, `excluded` the others. `baseline` and `contender` are
    geometric means. `low` and `high` bound `change` at `confidence`; `half_width` is half the width
    of the interval, as a share. `likely_change`, of claimed changes: the change corrected for the
    selection (`selective_inference`). `fragile`: the second opinion (`robust`, from 7 blocks) leads
    to another verdict. Not `paired`: trials that share no block (`compare_unpaired`); then `blocks`
    counts the trials of the smaller side, and `unconfirmed`: they differ, but too few runs measured
    them for a verdict. `degrees` of freedom of the test. `order_effect`: of the order of the trials
    in a block; if it could not be separated from the change, it is None, and `order_note` has the
    reason. `builds`: the number of different builds of baseline and contender; 0 if unknown.
    `nested`: the error contains the variance between builds; then there is no `robust` estimate.
    `build_noise`: the noise between builds that was added because a side has a single build.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    better: Better
    margin: float
    confidence: float
    blocks: int
    excluded: int = 0
    baseline: float | None = None
    contender: float | None = None
    change: float | None = None
    likely_change: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    equivalence_p: float | None = None
    half_width: float | None = None
    robust: RobustChange | None = None
    fragile: bool = False
    paired: bool = True
    unconfirmed: bool = False
    degrees: float | None = None
    order_effect: OrderEffect | None = None
    order_note: str = ""
    builds: tuple[int, int] = (0, 0)
    nested: bool = False
    build_noise: float | None = None

    @property
    def has_one_build(self) -> bool:
        """Return whether a side has a single build, so that its difference is in the change."""
        return 1 in self.builds


def compare_blocks(
    baseline: Sequence[float | None],
    contender: Sequence[float | None],
    *,
    better: Better,
    margin: float,
    orders: Sequence[int] = (),
    builds: Sequence[tuple[int, int]] = (),
    build_noise: BuildNoise | None = None,
    alpha: float = ALPHA,
    equivalence_alpha: float = EQUIVALENCE_ALPHA,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare block by block: `baseline[i]` and `contender[i]` were measured in block i.

    `orders[i]` is the order of block i, as in `order_effect`, and `builds[i]` are the builds of its
    trials (any numbers that identify them); without them they are not known. `build_noise`: the
    noise between builds, if it is known from elsewhere. A block with a None is excluded. The
    verdicts:

    - regressed or improved: p < `alpha` and the change is beyond ±`margin`
    - trivial: p < `alpha`, and the change is proven to be within ±`margin` at `equivalence_alpha`
    - equivalent: only the latter
    - inconclusive: all other cases, and fewer than 5 blocks

    A value of zero has no ratio: the comparison is inconclusive and has no change, whatever the
    number of blocks. If all values are zero, there is no difference. Interim analyses pass their
    own alphas (`interim`).

    Raises ValueError for sides, orders or builds of different length, a negative or non-finite
    value, and a margin that is not between 0 and 1.
    """
    check_parameters(better, margin)
    pairs, known_orders, known_builds = _select_pairs(baseline, contender, orders, builds)
    blocks = len(pairs)
    unknown = Comparison(
        verdict=Verdict.INCONCLUSIVE,
        reasons=_find_obstacles(pairs),
        better=better,
        margin=margin,
        confidence=confidence,
        blocks=blocks,
        excluded=len(baseline) - blocks,
        builds=count_builds(known_builds),
    )
    if unknown.reasons:
        return unknown
    are_zero = not pairs.any()
    logs = np.zeros_like(pairs) if are_zero else np.log(pairs)
    before, after = (0.0, 0.0) if are_zero else np.exp(logs.mean(axis=0)).tolist()
    numbers = np.array([known_builds], dtype=np.int64)
    means = compute_block_means((logs[:, 1] - logs[:, 0])[None], known_orders[None])
    means = add_build_variance(means, numbers, [build_noise])
    unknown = replace(
        unknown,
        baseline=before,
        contender=after,
        build_noise=find_added_noise(numbers[0], build_noise),
    )
    return _judge_pairs(unknown, means, known_orders, alpha, equivalence_alpha)


def compute_standard_error(comparison: Comparison) -> float | None:
    """Return the standard error of the log of the change; None without an interval."""
    if comparison.half_width is None or comparison.degrees is None:
        return None
    quantile = compute_t_quantile(comparison.confidence, comparison.degrees)
    return math.log1p(comparison.half_width) / quantile


def check_parameters(better: str, margin: float) -> None:
    """Raise ValueError for an unknown direction, and for a margin that is not between 0 and 1."""
    if not 0 < margin < 1:
        raise ValueError(f"margin {margin}: expected a share between 0 and 1")
    if better not in ("higher", "lower"):
        raise ValueError(f"better {better!r}: expected 'higher' or 'lower'")


def _judge_pairs(
    unknown: Comparison,
    means: BlockMeans,
    orders: Orders,
    alpha: float,
    equivalence_alpha: float,
) -> Comparison:
    """Compare the pairs; `unknown` has the means of both sides."""
    better, margin, confidence = unknown.better, unknown.margin, unknown.confidence
    test = compute_paired_test(means, margin=margin, confidence=confidence)
    verdict = derive_verdict(test, better, alpha, equivalence_alpha)
    nested = bool(means.nested[0])
    robust = None if nested else _estimate_robust(means.differences[0], confidence)
    fragile = robust is not None and contradicts_verdict(robust, verdict, better, margin)
    return replace(
        unknown,
        verdict=verdict,
        reasons=build_reasons(
            test.n, verdict, margin, test.half_width, fragile, changed=is_changed(test, alpha)
        ),
        change=as_change(test.mean),
        low=_change(test.low),
        high=_change(test.high),
        p_value=test.p_value,
        equivalence_p=test.equivalence_p,
        half_width=_change(test.half_width),
        robust=robust,
        fragile=fragile,
        degrees=test.degrees,
        order_effect=_build_order_effect(means, confidence),
        order_note=explain_unseparated(orders),
        nested=nested,
    )


def _build_order_effect(means: BlockMeans, confidence: float) -> OrderEffect | None:
    if not means.separated[0]:
        return None
    effect = float(means.effect[0])
    reach = compute_t_quantile(confidence, float(means.block_degrees[0]))
    half_width = reach * float(means.block_error[0])
    return OrderEffect(
        change=as_change(effect),
        low=as_change(effect - half_width),
        high=as_change(effect + half_width),
    )


def _select_pairs(
    baseline: Sequence[float | None],
    contender: Sequence[float | None],
    orders: Sequence[int],
    builds: Sequence[tuple[int, int]],
) -> tuple[NDArray[np.float64], Orders, list[tuple[int, int]]]:
    """Return the pairs with both values, their orders and their builds."""
    if len(baseline) != len(contender):
        raise ValueError(f"{len(baseline)} baseline values but {len(contender)} of the contender")
    if orders and len(orders) != len(baseline):
        raise ValueError(f"{len(baseline)} blocks but {len(orders)} orders")
    if builds and len(builds) != len(baseline):
        raise ValueError(f"{len(baseline)} blocks but {len(builds)} pairs of builds")
    every = orders or [UNKNOWN] * len(baseline), builds or [UNKNOWN_BUILDS] * len(baseline)
    known = [
        (before, after, order, pair)
        for before, after, order, pair in zip(baseline, contender, *every, strict=True)
        if before is not None and after is not None
    ]
    pairs = np.array([each[:2] for each in known], dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(pairs).all() or (pairs < 0).any():
        raise ValueError("values to compare must be finite and not negative")
    known_orders = np.array([order for *_, order, _ in known], dtype=np.int64)
    return pairs, known_orders, [pair for *_, pair in known]


def _find_obstacles(pairs: NDArray[np.float64]) -> tuple[str, ...]:
    if not len(pairs):
        return ("no block has both values",)
    some_are_zero = (pairs == 0).any() and pairs.any()
    return ("a value of zero has no ratio",) if some_are_zero else ()


def as_change(log_ratio: float) -> float:
    """Convert a log ratio to a change; finite for any pair of values."""
    return math.expm1(min(log_ratio, LARGEST_LOG))


def _change(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else as_change(log_ratio)


def derive_verdict(
    test: PairedTest, better: Better, alpha: float, equivalence_alpha: float
) -> Verdict:
    """Return the verdict of a paired or unpaired test by the rules of `compare_blocks`."""
    if test.n < FEWEST_BLOCKS or test.p_value is None or test.equivalence_p is None:
        return Verdict.INCONCLUSIVE
    return choose_verdict(
        as_change(test.mean),
        better,
        test.margin,
        changed=is_changed(test, alpha),
        same=test.equivalence_p < equivalence_alpha,
    )


def is_changed(test: PairedTest, alpha: float) -> bool:
    """Return whether there is a difference, of any size."""
    return test.p_value is not None and test.p_value < alpha


def choose_verdict(
    change: float, better: Better, margin: float, *, changed: bool, same: bool
) -> Verdict:
    """Return the verdict for a measured change.

    `changed`: there is a difference. `same`: the difference is proven to be within the margin. A
    difference that is measured within the margin, without that proof, may be beyond it.
    """
    if same:
        return Verdict.TRIVIAL if changed else Verdict.EQUIVALENT
    if not changed or abs(change) <= margin:
        return Verdict.INCONCLUSIVE
    return Verdict.IMPROVED if (change > 0) == (better == "higher") else Verdict.REGRESSED


def _estimate_robust(differences: NDArray[np.float64], confidence: float) -> RobustChange | None:
    if differences.size < FEWEST_PAIRS:
        return None
    centre = estimate_hodges_lehmann(differences.tolist(), confidence=confidence)
    return RobustChange(
        change=as_change(centre.estimate),
        low=as_change(centre.low),
        high=as_change(centre.high),
    )


def contradicts_verdict(
    robust: RobustChange, verdict: Verdict, better: Better, margin: float
) -> bool:
    """Return whether the robust interval contradicts a decided verdict."""
    if verdict is Verdict.INCONCLUSIVE:
        return False
    same = -margin < robust.low and robust.high < margin
    if verdict is Verdict.EQUIVALENT:
        return not same
    changed = robust.low > 0 or robust.high < 0
    second = choose_verdict(robust.change, better, margin, changed=changed, same=same)
    return second is not verdict


def build_reasons(
    n: int,
    verdict: Verdict,
    margin: float,
    half_width: float | None,
    fragile: bool,
    *,
    changed: bool = False,
    unit: str = "blocks",
) -> tuple[str, ...]:
    """Return the reasons for an undecided or fragile verdict.

    `half_width` is a log; `n` counts `unit`. `changed`: there is a difference, of any size.
    """
    reasons = []
    if n < FEWEST_BLOCKS:
        reasons.append(f"{n} of at least {FEWEST_BLOCKS} {unit}")
    elif verdict is Verdict.INCONCLUSIVE:
        width, limit = (format_percent(each) for each in (as_change(half_width or 0), margin))
        reasons.append(
            f"a real difference, but its size is not decided: the interval is ±{width} wide, and "
            f"the margin is ±{limit}"
            if changed
            else f"the interval is ±{width} wide: it proves neither a change nor that there is "
            f"none beyond ±{limit}"
        )
    if fragile:
        reasons.append("fragile: the robust estimate leads to another verdict")
    return tuple(reasons)
