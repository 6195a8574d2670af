"""The error rate of comparisons of two commits that run until they are decided."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
    compute_next_analysis,
)
from orchestrator.stats.many import ComparisonInput, compare_many

MARGIN = 0.03
NOISES = (0.01, 0.02, 0.03, 0.05)
EFFECTS = (0.0, 0.02, MARGIN, 0.05, 0.10)
#: Comparisons with a change of just the margin, for one of another size. Their error rate is near
#: its limit. Of 600 comparisons, the largest of several shares exceeds the limit by chance.
MORE_AT_MARGIN = 10
#: Drift of the host from block to block; both trials of a block share it.
DRIFT = 0.02
CHANGED = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.TRIVIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """Shares and mean blocks of many comparisons with this noise of a trial and this slowdown."""

    noise: float
    effect: float
    regressed: float
    changed: float
    trivial: float
    equivalent: float
    blocks: float


def measure_grid(number: int, seed: int) -> list[Comparisons]:
    """Return the grid of noises and effects, `number` comparisons each, and more at the margin."""
    rng = np.random.default_rng([seed, 9])
    return [
        measure_comparisons(
            rng, number * (MORE_AT_MARGIN if effect == MARGIN else 1), noise, effect
        )
        for noise in NOISES
        for effect in EFFECTS
    ]


def measure_comparisons(
    rng: np.random.Generator, number: int, noise: float, effect: float
) -> Comparisons:
    """Return the rates of `number` comparisons that end at the first analysis with a verdict."""
    shape = number, INTERIM_BLOCKS[-1]
    drift = np.cumsum(rng.normal(0, DRIFT, shape), axis=1)
    before = 100 * np.exp(drift + rng.normal(0, noise, shape))
    after = 100 * np.exp(drift + np.log1p(effect) + rng.normal(0, noise, shape))
    ends = compare_until_decided(before, after)
    verdicts = Counter(end.verdict for end in ends)
    return Comparisons(
        noise=noise,
        effect=effect,
        regressed=verdicts[Verdict.REGRESSED] / number,
        changed=sum(verdicts[verdict] for verdict in CHANGED) / number,
        trivial=verdicts[Verdict.TRIVIAL] / number,
        equivalent=verdicts[Verdict.EQUIVALENT] / number,
        blocks=sum(end.blocks for end in ends) / number,
    )


def compare_until_decided(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    orders: NDArray[np.int64] | None = None,
) -> list[Comparison]:
    """Return the final comparisons: the first interim analysis with a verdict, or the last one.

    The arrays have a row for each comparison and a column for each block.
    """
    ends: dict[int, Comparison] = {}
    open_ = list(range(len(before)))
    for look in INTERIM_BLOCKS:
        cells = [
            ComparisonInput(
                baseline=before[at, :look].tolist(),
                contender=after[at, :look].tolist(),
                better="lower",
                margin=MARGIN,
                orders=() if orders is None else orders[at, :look].tolist(),
            )
            for at in open_
        ]
        results = compare_many(
            cells, alpha=INTERIM_ALPHA, equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA
        )
        ends.update(zip(open_, results, strict=True))
        open_ = [at for at in open_ if compute_next_analysis(ends[at]) is not None]
    return [ends[at] for at in range(len(before))]
