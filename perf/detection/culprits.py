"""Whether bisections blame one commit for the effect of two."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.bisection import (
    Answer,
    Culprit,
    NextMeasurement,
    compute_step_blocks,
    plan_step,
)
from orchestrator.stats.culprit_share import Blame, estimate_culprit_share, find_partial_level
from orchestrator.stats.power import compute_block_sigma

COMMITS, EFFECT, NOISE = 32, 0.08, 0.02
#: The blocks of the confirmation run of both ends.
CONFIRMED_BLOCKS = 10
#: The share of the first culprit; 1 means that there is only one.
SHARES = (1.0, 0.6, 0.5)
MOST_STEPS = 2 * 5 + 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """`blamed`: bisections that give one commit all of the blame; `right`: the culprit, alone.

    `partly`: those that find some of the effect. `steps`: their mean number.
    """

    share: float
    blamed: float
    right: float
    partly: float
    steps: float


def measure_culprits(number: int, seed: int) -> list[Culprits]:
    rng = np.random.default_rng([seed, 71])
    return [_measure(rng, number, share) for share in SHARES]


def _measure(rng: np.random.Generator, number: int, share: float) -> Culprits:
    blamed = right = partly = steps = 0
    for _ in range(number):
        first, second = sorted(rng.choice(COMMITS, 2, replace=False).tolist())
        levels = np.zeros(COMMITS)
        levels[first:] += share * math.log1p(EFFECT)
        levels[second:] += (1 - share) * math.log1p(EFFECT)
        found, blame, taken = bisect(rng, levels)
        steps += taken
        blamed += blame is Blame.ALL
        right += blame is Blame.ALL and found == first
        partly += found is not None and blame is not Blame.ALL
    return Culprits(
        share=share,
        blamed=blamed / number,
        right=right / number,
        partly=partly / number,
        steps=steps / number,
    )


def bisect(rng: np.random.Generator, levels: NDArray[np.float64]) -> tuple[int | None, Blame, int]:
    """Bisect as `regressions.bisections` does: the commit, its blame, and the number of steps."""
    sigma = compute_block_sigma(NOISE)
    whole = _measure_commit(rng, len(levels) - 1, levels, CONFIRMED_BLOCKS, sigma)
    effect, effect_error = whole.difference, whole.error
    blocks = compute_step_blocks(effect, effect_error, whole.blocks)
    answers: list[Answer] = []
    while True:
        partial = find_partial_level(answers, effect=effect, effect_error=effect_error)
        if partial is not None:
            return partial.index, Blame.PART, len(answers)
        step = plan_step(len(levels), answers, effect=effect, effect_error=effect_error)
        share = None
        if isinstance(step, Culprit):
            share = estimate_culprit_share(
                step.first, len(levels), answers, effect=effect, effect_error=effect_error
            )
            is_open = share.blame is Blame.OPEN and share.weakest is not None
            if not is_open or len(answers) >= MOST_STEPS:
                return step.first, share.blame, len(answers)
            step = NextMeasurement(index=share.weakest or 0)
        if len(answers) >= MOST_STEPS:
            return None, Blame.OPEN, len(answers)
        answers.append(_measure_commit(rng, step.index, levels, blocks, sigma))


def _measure_commit(
    rng: np.random.Generator, index: int, levels: NDArray[np.float64], blocks: int, sigma: float
) -> Answer:
    logs = rng.normal(levels[index], sigma, blocks)
    return Answer(
        index=index,
        difference=float(logs.mean()),
        error=float(logs.std(ddof=1)) / math.sqrt(blocks),
        blocks=blocks,
        degrees=blocks - 1,
    )
