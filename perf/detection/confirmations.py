"""How confirmation runs judge changes of the series that they are asked about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import Comparison, compare_blocks
from orchestrator.stats.confirmation import (
    Confirmation,
    get_confirmation_spending,
    judge_confirmation,
)
from orchestrator.stats.interim import compute_next_analysis, find_analysis_after
from orchestrator.stats.power import compute_block_sigma

NOISES = (0.01, 0.02, 0.03)
#: The margin of a metric, the change that was detected, and the true one.
CHANGES = (
    (0.03, 0.025, 0.0),
    (0.03, 0.025, 0.025),
    (0.03, 0.04, 0.025),
    (0.03, 0.05, 0.05),
    (0.05, 0.04, 0.0),
    (0.05, 0.04, 0.04),
    (0.05, 0.045, 0.045),
)
#: The earlier confirmation runs around a change that does not exist.
EARLIER_RUNS = 10
#: The alphas of the interim analyses, which end a run.
FIRST_RUN = get_confirmation_spending(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmations:
    """The shares of the results, for one noise of a trial and one change of CHANGES."""

    noise: float
    margin: float
    detected: float
    true: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRates:
    """`grid`, and the share of changes without an effect that one of EARLIER_RUNS runs confirms."""

    grid: list[Confirmations]
    any_confirmed: float


def measure_confirmations(number: int, seed: int) -> ConfirmationRates:
    """Return the shares of `number` confirmation runs each."""
    rng = np.random.default_rng([seed, 70])
    return ConfirmationRates(
        grid=[_measure(rng, number, noise, *change) for noise in NOISES for change in CHANGES],
        any_confirmed=measure_many_runs(rng, number),
    )


def _measure(
    rng: np.random.Generator,
    number: int,
    noise: float,
    margin: float,
    detected: float,
    true: float,
) -> Confirmations:
    results = Counter(
        confirm(rng, noise=noise, margin=margin, detected=detected, true=true)
        for _ in range(number)
    )
    return Confirmations(
        noise=noise,
        margin=margin,
        detected=detected,
        true=true,
        shares={str(each): results[each] / number for each in Confirmation},
    )


def measure_many_runs(rng: np.random.Generator, number: int) -> float:
    """Return the share of changes without an effect that one of several runs calls real."""
    real = (Confirmation.CONFIRMED, Confirmation.SMALL)
    wrong = sum(
        any(
            confirm(rng, noise=0.03, margin=0.03, detected=0.03, true=0.0, run=run) in real
            for run in range(1, EARLIER_RUNS + 1)
        )
        for _ in range(number)
    )
    return wrong / number


def confirm(
    rng: np.random.Generator,
    *,
    noise: float,
    margin: float,
    detected: float,
    true: float,
    run: int = 1,
) -> Confirmation:
    """Return the result of a confirmation run, which measures until its case is decided."""
    spending = get_confirmation_spending(run)
    logs = rng.normal(math.log1p(true), compute_block_sigma(noise), 20)
    blocks: int | None = find_analysis_after(0)
    while blocks is not None:
        done = blocks
        blocks = compute_next_analysis(_compare(logs[:done], margin, FIRST_RUN))
    comparison = _compare(logs[:done], margin, spending)
    return judge_confirmation(comparison, detected=detected, spending=spending)


def _compare(logs: NDArray[np.float64], margin: float, spending: Spending) -> Comparison:
    contender = np.exp(logs).tolist()
    return compare_blocks(
        [1.0] * len(contender),
        contender,
        better="lower",
        margin=margin,
        alpha=spending.alpha,
        equivalence_alpha=spending.equivalence_alpha,
    )
