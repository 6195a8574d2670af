"""The estimated number of blocks that decides a comparison, next to the number really needed.

A comparison with some blocks is inconclusive. Its continuations are simulated. The number really
needed is the smallest total that decides four in five of them. They have either the change and the
noise that the present blocks show, or the true ones, which the estimate cannot know.
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
    EVEN_ODDS,
    DecisionRule,
    estimate_needed_blocks,
    is_out_of_reach,
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
class NeededBlocks:
    """Shares of inconclusive comparisons with `present` blocks.

    `as_measured`: the estimated total is within FACTOR of the number really needed with the change
    and the noise that the blocks show. `right`: the same with the true ones; the others are too
    `low` or too `high`. `decided`: true continuations that are decided with the estimated number,
    and `decided_even` with the number for even odds. `out_of_reach`: estimates above what a run
    may have.
    """

    present: int
    comparisons: int
    as_measured: float
    right: float
    low: float
    high: float
    decided: float
    decided_even: float
    out_of_reach: float


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Ratios of the estimate to the number really needed, as measured and in truth."""

    measured: float
    true: float
    decided: float
    decided_even: float | None
    out_of_reach: bool


def measure_needed_blocks(number: int, seed: int) -> list[NeededBlocks]:
    """Return the shares for each number of blocks.

    They are of `number` inconclusive comparisons of each rule, noise and effect that leaves so
    many of 2,000 open.
    """
    rng = np.random.default_rng([seed, 10])
    return [_summarise(present, list(_simulate(rng, number, present))) for present in PRESENT]


def _summarise(present: int, estimates: Sequence[_Estimate]) -> NeededBlocks:
    measured = np.array([each.measured for each in estimates])
    true = np.array([each.true for each in estimates])
    return NeededBlocks(
        present=present,
        comparisons=len(estimates),
        as_measured=float((np.abs(np.log(measured)) <= math.log(FACTOR)).mean()),
        right=float((np.abs(np.log(true)) <= math.log(FACTOR)).mean()),
        low=float((true < 1 / FACTOR).mean()),
        high=float((true > FACTOR).mean()),
        decided=float(np.mean([each.decided for each in estimates if not each.out_of_reach])),
        decided_even=float(
            np.mean([each.decided_even for each in estimates if each.decided_even is not None])
        ),
        out_of_reach=float(np.mean([each.out_of_reach for each in estimates])),
    )


def _simulate(rng: np.random.Generator, number: int, present: int) -> Iterator[_Estimate]:
    for rule, noise, effect in product(RULES, NOISES, EFFECTS):
        mean, sigma = math.log1p(effect), compute_block_sigma(noise)
        differences = rng.normal(mean, sigma, (_ATTEMPTS, present))
        open_ = differences[~find_decided(differences, rule)[:, -1]][:number]
        if len(open_) < number:
            continue
        comparisons = [_compare(each) for each in open_]
        needed = estimate_needed_blocks(comparisons, rule)
        even = estimate_needed_blocks(comparisons, rule, EVEN_ODDS)
        for each, comparison, total, fewer in zip(open_, comparisons, needed, even, strict=True):
            assert total is not None
            assert fewer is not None
            seen = _continue(rng, each, float(each.mean()), float(each.std(ddof=1)), rule)
            true = _continue(rng, each, mean, sigma, rule)
            out_of_reach = is_out_of_reach(comparison, total)
            yield _Estimate(
                measured=_compute_ratio(present, total, seen, out_of_reach=out_of_reach),
                true=_compute_ratio(present, total, true, out_of_reach=out_of_reach),
                decided=float(true[total - present - 1]),
                decided_even=None
                if is_out_of_reach(comparison, fewer)
                else float(true[fewer - present - 1]),
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


def _compute_ratio(present: int, total: int, shares: Floats, *, out_of_reach: bool) -> float:
    enough = np.flatnonzero(shares >= POWER)
    really = present + 1 + (int(enough[0]) if enough.size else len(shares))
    # "More than a run may have" is right for all numbers above it.
    return 1.0 if out_of_reach and really >= total else total / really


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
