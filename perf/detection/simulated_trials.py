"""The trials of simulated runs: two commits, some cases and metrics, and what disturbs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orchestrator.loadtools.metrics import (
    PRIMARY,
    Metric,
    choose_deciding_metrics,
    find_metrics,
)
from orchestrator.runs.trial_order import order_trials
from orchestrator.stats.order_effect import CONTENDER_FIRST, CONTENDER_SECOND, Orders

Floats = NDArray[np.float64]

#: Trials of each side of a case. A run takes at most 20; the third ten are for another method, and
#: for sides that several runs measured.
ROUNDS = 30
ROUNDS_OF_A_RUN = 10
#: The number of different orders of trials; to plan one takes longer than to judge a small run.
_PLANS = 200
#: The share of the variance of a trial that all its metrics have in common.
COMMON = 0.5
#: The slowdown of a trial by other work on the host, as logs.
OUTLIER_FROM, OUTLIER_TO = 0.1, 0.4

_INFORMING = (
    "latency.mean", "latency.p90", "latency.p95", "latency.p99", "memory.server_peak"
)  # fmt: skip
#: The metrics of a case: one, or the three that decide in a closed loop, or these and five for
#: information. The eight of a script all decide.
METRICS: dict[str, tuple[str, ...]] = {
    "1": PRIMARY["closed"][:1],
    "3": PRIMARY["closed"],
    "3+5": (*PRIMARY["closed"], *_INFORMING),
    "8": tuple(f"script.step{at}_s" for at in range(8)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """How trials of the same code differ.

    Standard deviations of logs: `noise` of a trial; `drift` of the host from one round to the next;
    `builds` between two builds of a commit, where a run has one of each commit; `runs` between two
    runs of a commit. `order`: the change from the first to the second trial of a block. `outliers`:
    the share of trials that other work on the host slows down.
    """

    noise: float
    drift: float = 0.0
    builds: float = 0.0
    runs: float = 0.0
    order: float = 0.0
    outliers: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedChange:
    """The first `cases` are worse by `size` (a share; better if it is negative).

    All metrics of these cases change, or only the first one.
    """

    size: float = 0.0
    cases: int = 0
    first_metric_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTrials:
    """`values`: case × metric × side × round. `orders`: case × round.

    `primary`: the number of metrics that decide; they come first. `truth`: case × metric, the true
    change of the contender as a log.
    """

    values: Floats
    orders: Orders
    metrics: Sequence[Metric]
    primary: int
    truth: Floats

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Return which cells of `truth` are changes for the worse."""
        return np.asarray(self.truth * get_signs(self.metrics) > 0)


def list_metrics(kind: str) -> tuple[list[Metric], int]:
    """Return the metrics of a key of METRICS, first those that decide, and the number of these."""
    keys = METRICS[kind]
    deciding = choose_deciding_metrics(PRIMARY["closed"], keys)
    metrics = find_metrics(keys)
    return sorted(metrics, key=lambda metric: metric.key not in deciding), len(deciding)


def get_signs(metrics: Sequence[Metric]) -> Floats:
    """Return 1 for each metric that rises if the code gets slower, else −1."""
    return np.array([1.0 if metric.better == "lower" else -1.0 for metric in metrics])


def draw_trials(
    rng: np.random.Generator,
    *,
    cases: int,
    kind: str,
    variation: Variation,
    change: PlantedChange,
) -> SimulatedTrials:
    """Return the trials of a run in the order that runs plan; `kind` is a key of METRICS."""
    metrics, primary = list_metrics(kind)
    signs = get_signs(metrics)
    orders = _plan_orders(cases, int(rng.integers(_PLANS)))
    slowness = _draw_slowness(rng, orders, len(metrics), variation)
    truth = _build_truth(cases, signs, change)
    logs = signs[:, None, None] * slowness
    logs[:, :, 1] += truth[:, :, None]
    return SimulatedTrials(
        values=np.exp(logs), orders=orders, metrics=metrics, primary=primary, truth=truth
    )


@lru_cache(maxsize=4 * _PLANS)
def _plan_orders(cases: int, seed: int) -> Orders:
    """Return the order of each block, as runs plan it: case × round."""
    slots = order_trials(cases, 2, ROUNDS, seed)
    orders = np.empty((cases, ROUNDS), dtype=np.int64)
    for second in slots[1::2]:
        order = CONTENDER_SECOND if second.variant == 1 else CONTENDER_FIRST
        orders[second.case, second.round - 1] = order
    return orders


def _build_truth(cases: int, signs: Floats, change: PlantedChange) -> Floats:
    truth = np.zeros((cases, signs.size))
    metrics = 1 if change.first_metric_only else signs.size
    truth[: change.cases, :metrics] = np.log1p(signs[:metrics] * change.size)
    return truth


def _draw_slowness(
    rng: np.random.Generator, orders: Orders, metrics: int, variation: Variation
) -> Floats:
    """Return how much slower each trial is, as logs: case × metric × side × round."""
    cases = len(orders)
    trials = (cases, 1, 2, ROUNDS)
    slowness = rng.normal(0, np.sqrt(1 - COMMON), (cases, metrics, 2, ROUNDS))
    slowness += rng.normal(0, np.sqrt(COMMON), trials)
    slowness *= variation.noise
    # The cases of a round follow each other, and share the state of the host.
    slowness += np.cumsum(rng.normal(0, variation.drift, ROUNDS))
    slowness += rng.normal(0, variation.builds, (cases, 1, 2, 1))
    runs = rng.normal(0, variation.runs, (cases, 1, 2, ROUNDS // ROUNDS_OF_A_RUN))
    slowness += np.repeat(runs, ROUNDS_OF_A_RUN, axis=-1)
    later = np.stack([orders == CONTENDER_FIRST, orders == CONTENDER_SECOND], axis=1)
    slowness += np.log1p(variation.order) * later[:, None]
    disturbed = rng.random(trials) < variation.outliers
    slowness += disturbed * rng.uniform(OUTLIER_FROM, OUTLIER_TO, trials)
    return slowness
