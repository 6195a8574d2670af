"""The estimated number of blocks that decides a comparison, next to the number really needed.

A comparison with some blocks is inconclusive. Its continuations are simulated, with the true change
and noise, which the estimate cannot know. The number really needed is the smallest total that
decides four in five of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from orchestrator.stats.comparison import Comparison
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.needed_blocks import (
    DecisionRule,
    NeededBlocks,
    estimate_needed_blocks,
)
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import MOST_BLOCKS, POWER, compute_block_sigma
from perf.detection.comparisons import EFFECTS, MARGIN, NOISES

Floats = NDArray[np.float64]

#: Blocks of the inconclusive comparisons.
PRESENT = (5, 7, 10, 20)
#: An estimate is right within this factor.
FACTOR = 1.5
#: A comparison alone, and the first change among 60 of a table.
RULES = (DecisionRule(), DecisionRule(claim_alpha=0.05 / 60))
CONTINUATIONS = 300
#: Comparisons that are simulated to find inconclusive ones.
_ATTEMPTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededBlockErrors:
    """Shares of inconclusive comparisons with `present` blocks.

    `covered`: the number really needed is within the range. `open_ranges`: ranges without an upper
    end, because it is above what a run may have; `width`: the median of largest / smallest total of
    the others. `right`: the estimate is within FACTOR of the number really needed; the others are
    too `low` or too `high`. `decided`: continuations that are decided with the estimated number.
    `out_of_reach`: estimates above what a run may have.
    """

    present: int
    comparisons: int
    covered: float
    open_ranges: float
    width: float
    right: float
    low: float
    high: float
    decided: float
    out_of_reach: float


@dataclass(frozen=True, slots=True)
class _Estimate:
    """`ratio`: of the estimate to the number really needed. `width`: infinite for open ranges."""

    ratio: float
    covered: bool
    width: float
    decided: float
    out_of_reach: bool


def measure_needed_blocks(
    number: int, seed: int, presents: Sequence[int] = PRESENT
) -> list[NeededBlockErrors]:
    """Return the shares for each number of present blocks.

    They are of `number` inconclusive comparisons of each rule, noise and effect that leaves so
    many of 2,000 open.
    """
    rng = np.random.default_rng([seed, 10])
    return [_summarise(present, list(_simulate(rng, number, present))) for present in presents]


def _summarise(present: int, estimates: Sequence[_Estimate]) -> NeededBlockErrors:
    ratios = np.array([each.ratio for each in estimates])
    widths = np.array([each.width for each in estimates])
    bounded = widths[np.isfinite(widths)]
    return NeededBlockErrors(
        present=present,
        comparisons=len(estimates),
        covered=float(np.mean([each.covered for each in estimates])),
        open_ranges=1 - bounded.size / widths.size,
        width=float(np.median(bounded)) if bounded.size else 1.0,
        right=float((np.abs(np.log(ratios)) <= math.log(FACTOR)).mean()),
        low=float((ratios < 1 / FACTOR).mean()),
        high=float((ratios > FACTOR).mean()),
        decided=float(np.mean([each.decided for each in estimates if not each.out_of_reach])),
        out_of_reach=float(np.mean([each.out_of_reach for each in estimates])),
    )


def _simulate(rng: np.random.Generator, number: int, present: int) -> Iterator[_Estimate]:
    for rule, noise, effect in product(RULES, NOISES, EFFECTS):
        mean, sigma = math.log1p(effect), compute_block_sigma(noise)
        differences = rng.normal(mean, sigma, (_ATTEMPTS, present))
        open_ = differences[~find_decided(differences, rule)[:, -1]][:number]
        if len(open_) < number:
            continue
        needed = estimate_needed_blocks([_compare(each) for each in open_], rule)
        for each, blocks in zip(open_, needed, strict=True):
            assert blocks is not None
            yield _judge_estimate(present, blocks, _continue(rng, each, mean, sigma, rule))


def _judge_estimate(present: int, needed: NeededBlocks, shares: Floats) -> _Estimate:
    """`shares` of the continuations are decided with one, two, … further blocks."""
    enough = np.flatnonzero(shares >= POWER)
    really = present + 1 + (int(enough[0]) if enough.size else len(shares))
    further = needed.count_further(present)
    out_of_reach, is_open = further.in_reach is None, further.range[1] is None
    return _Estimate(
        # "More than a run may have" is right for all numbers above it.
        ratio=1.0 if out_of_reach and really >= needed.probable else needed.probable / really,
        covered=needed.least <= really and (is_open or really <= needed.most),
        width=math.inf if is_open else needed.most / needed.least,
        decided=float(shares[needed.probable - present - 1]),
        out_of_reach=out_of_reach,
    )


def _compare(differences: Floats) -> Comparison:
    (comparison,) = compare_many(
        [
            ComparisonInput(
                baseline=[1.0] * len(differences),
                contender=np.exp(differences).tolist(),
                better="lower",
                margin=MARGIN,
            )
        ]
    )
    return comparison


def _continue(
    rng: np.random.Generator, present: Floats, mean: float, sigma: float, rule: DecisionRule
) -> Floats:
    """Return the share of continuations that are decided with one, two, … further blocks."""
    more = round(FACTOR * (present.size + MOST_BLOCKS + 1)) - present.size
    further = rng.normal(mean, sigma, (CONTINUATIONS, more))
    whole = np.concatenate([np.tile(present, (CONTINUATIONS, 1)), further], axis=1)
    return np.asarray(find_decided(whole, rule)[:, present.size :].mean(axis=0))


def find_decided(
    differences: Floats, rule: DecisionRule, margin: float = MARGIN
) -> NDArray[np.bool_]:
    """Return whether the first one, two, … blocks of each row decide it.

    It is the rule of `compare_blocks`, with the p value that a claim needs among many, for all
    numbers of blocks at once. `differences` are logs of ratios.
    """
    blocks = np.arange(1, differences.shape[1] + 1, dtype=np.float64)
    means = np.cumsum(differences, axis=1) / blocks
    squares = np.cumsum(differences**2, axis=1) - blocks * means**2
    degrees = np.maximum(blocks - 1, 1)
    errors = np.sqrt(np.maximum(squares, 0.0) / degrees / blocks)
    low, high = math.log1p(-margin), math.log1p(margin)
    beyond = (means < low) | (means > high)
    changed = beyond & (np.abs(means) > stdtrit(degrees, 1 - rule.claim_alpha / 2) * errors)
    reach = stdtrit(degrees, 1 - rule.equivalence_alpha) * errors
    same = (means - reach > low) & (means + reach < high)
    return np.asarray((changed | same) & (blocks >= FEWEST_BLOCKS))
