"""False alarms in histories whose points are not equally well known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.stats.changes import find_changes
from orchestrator.stats.precision import estimate_errors

POINTS, TRIALS = 120, 5
#: The noise between points, and that of a trial.
BETWEEN, WITHIN = 0.01, 0.02
#: One in this many points is different: its trials are noisier, or it has more of them.
EVERY = 5
KINDS = ("equal", "noisier", "many trials", "few or many")


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms:
    """Shares of histories without a change that have a candidate, or an alert."""

    candidates: float
    alerts: float


def measure_false_alarms(number: int, seed: int) -> Mapping[str, FalseAlarms]:
    """Return the shares of `number` histories of each kind."""
    rng = np.random.default_rng([seed, 72])
    return {kind: _measure(rng, number, kind) for kind in KINDS}


def _measure(rng: np.random.Generator, number: int, kind: str) -> FalseAlarms:
    found = [find_in_history(rng, kind) for _ in range(number)]
    return FalseAlarms(
        candidates=sum(bool(kinds) for kinds in found) / number,
        alerts=sum("alert" in kinds for kinds in found) / number,
    )


def find_in_history(rng: np.random.Generator, kind: str) -> list[str]:
    """Return the kinds of the changes that are found in a history without a change."""
    is_other = np.arange(POINTS) % EVERY == 0
    trials = np.full(POINTS, TRIALS)
    sigma = np.full(POINTS, WITHIN)
    if kind == "noisier":
        is_other = rng.random(POINTS) < 1 / EVERY
        sigma[is_other] *= 4 * np.sqrt(TRIALS * BETWEEN**2 / WITHIN**2 + 1)
    elif kind == "many trials":
        trials[is_other] = 300
    elif kind == "few or many":
        trials = rng.choice([3, 20], POINTS)
    values, squares = [], []
    for n, own in zip(trials.tolist(), sigma.tolist(), strict=True):
        logs = rng.normal(rng.normal(0, BETWEEN), own, n)
        values.append(float(np.exp(logs.mean())))
        squares.append(float(np.sum((logs - logs.mean()) ** 2)))
    errors = estimate_errors(trials.tolist(), squares)
    return [str(each.kind) for each in find_changes(values, errors=errors, least=0.02).points]
