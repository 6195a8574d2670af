"""How often comparisons claim a change that only the order of trials, or the run, has caused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.runs.trial_order import order_trials
from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.order_effect import CONTENDER_FIRST, CONTENDER_SECOND
from orchestrator.stats.unpaired import compare_unpaired
from perf.detection.comparisons import MARGIN, compare_until_decided

NOISES = (0.005, 0.01, 0.02)
ORDER_EFFECTS = (0.0, 0.02, 0.04, 0.05)
#: The noise between runs, and the number of runs on each side.
BETWEEN_RUNS = (0.01, 0.02, 0.03)
RUNS = (1, 2, 3, 5)
TRIALS_OF_A_RUN = 10
_CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderClaims:
    """Comparisons of one commit with itself; the second trial of a block differs by `effect`.

    Shares of comparisons that claim a change: as planned and analysed by Pitwall, and with random
    orders without their effect. `covered`: intervals of the order effect that contain it.
    """

    noise: float
    effect: float
    claimed: float
    claimed_if_random: float
    covered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaims:
    """Comparisons of one commit with itself, measured in other runs with noise `between` them.

    Shares of comparisons that claim a change, and that only mark a difference.
    """

    between: float
    runs: int
    claimed: float
    unconfirmed: float


@dataclass(frozen=True, slots=True)
class FalseClaims:
    orders: Sequence[OrderClaims]
    runs: Sequence[RunClaims]


def measure_false_claims(number: int, seed: int) -> FalseClaims:
    """Return the grids, `number` comparisons each."""
    rng = np.random.default_rng([seed, 67])
    return FalseClaims(
        [_measure_order(rng, number, noise, each) for noise in NOISES for each in ORDER_EFFECTS],
        [_measure_runs(rng, number, between, runs) for between in BETWEEN_RUNS for runs in RUNS],
    )


def draw_orders(rng: np.random.Generator, number: int, rounds: int) -> NDArray[np.int64]:
    """Return the orders of two variants as runs plan them: a row each, a column for each round."""
    seeds = rng.integers(0, 2**32, number).tolist()
    second = [[slot.variant for slot in order_trials(1, 2, rounds, seed)[1::2]] for seed in seeds]
    return np.where(np.array(second) == 1, CONTENDER_SECOND, CONTENDER_FIRST)


def draw_trials(
    rng: np.random.Generator, orders: NDArray[np.int64], *, effect: float, noise: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of both sides of an A/A comparison in these orders."""
    later = np.log1p(effect) * np.array([orders == CONTENDER_FIRST, orders == CONTENDER_SECOND])
    before, after = np.exp(later + rng.normal(0, noise, later.shape))
    return before, after


def count_claims(comparisons: Sequence[Comparison]) -> float:
    """Return the share of comparisons that claim a change."""
    return sum(each.verdict in _CLAIMS for each in comparisons) / len(comparisons)


def _measure_order(
    rng: np.random.Generator, number: int, noise: float, effect: float
) -> OrderClaims:
    orders = draw_orders(rng, number, INTERIM_BLOCKS[-1])
    before, after = draw_trials(rng, orders, effect=effect, noise=noise)
    ends = compare_until_decided(before, after, orders)
    shuffled = rng.choice([CONTENDER_FIRST, CONTENDER_SECOND], orders.shape)
    plain = compare_until_decided(*draw_trials(rng, shuffled, effect=effect, noise=noise))
    effects = [each.order_effect for each in ends if each.order_effect is not None]
    return OrderClaims(
        noise=noise,
        effect=effect,
        claimed=count_claims(ends),
        claimed_if_random=count_claims(plain),
        covered=sum(each.low <= effect <= each.high for each in effects) / max(1, len(effects)),
    )


def _measure_runs(rng: np.random.Generator, number: int, between: float, runs: int) -> RunClaims:
    shape = (number, 2, runs, TRIALS_OF_A_RUN)
    levels = rng.normal(0, between, (*shape[:-1], 1))
    values = np.exp(levels + rng.normal(0, NOISES[1], shape))
    found = [
        compare_unpaired(before, after, better="lower", margin=MARGIN)
        for before, after in values.tolist()
    ]
    return RunClaims(
        between=between,
        runs=runs,
        claimed=count_claims(found),
        unconfirmed=sum(each.unconfirmed for each in found) / number,
    )
