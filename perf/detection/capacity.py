"""The errors of the agent's capacity search, for servers that fail more or less steeply."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agents.hostagent.trials.capacity import LAPSE, CapacitySearch

#: The true slopes: the standard deviation of the log rate at which a probe fails.
TRUE_SLOPES = (0.01, 0.02, 0.05, 0.1, 0.15)
LOW, HIGH = 500.0, 8_000.0
#: The defaults of a definition.
MAX_PROBES, CONFIRMATIONS = 32, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityErrors:
    """Searches of servers with one slope; all of them count, however they ended.

    `bias` and `error`: mean and root mean square of ln(estimate / capacity). `covered`: the share
    of 90 % intervals that contain the capacity. `converged`: the share of searches that did.
    `width`: the median of high / low - 1. `probes`: their mean number.
    """

    slope: float
    bias: float
    error: float
    covered: float
    converged: float
    width: float
    probes: float


def measure_capacity_errors(
    number: int, seed: int, slopes: Sequence[float] = TRUE_SLOPES
) -> list[CapacityErrors]:
    """Return the errors of `number` searches for each slope."""
    rng = random.Random(seed)
    return [_measure_slope(rng, number, slope) for slope in slopes]


def _measure_slope(rng: random.Random, number: int, slope: float) -> CapacityErrors:
    truths = [2 * LOW * 2 ** rng.random() for _ in range(number)]
    probes, outcomes = zip(*(_search(rng, truth, slope) for truth in truths), strict=True)
    ends = list(zip(truths, outcomes, strict=True))
    errors = [math.log(end["capacity"] / truth) for truth, end in ends]
    return CapacityErrors(
        slope=slope,
        bias=statistics.mean(errors),
        error=math.sqrt(statistics.mean(each**2 for each in errors)),
        covered=sum(end["low"] <= truth <= end["high"] for truth, end in ends) / number,
        converged=sum(end["stopped"] == "converged" for _, end in ends) / number,
        width=statistics.median(end["high"] / end["low"] - 1 for _, end in ends),
        probes=statistics.mean(probes),
    )


def _search(rng: random.Random, capacity: float, slope: float) -> tuple[int, dict[str, float]]:
    """Return the number of probes and the outcome of one search."""
    search, probes = CapacitySearch(LOW, HIGH, MAX_PROBES, CONFIRMATIONS), 0
    while (rate := search.next_rate()) is not None:
        passed = rng.gauss(math.log(capacity), slope) > math.log(rate)
        search.add_probe(rate, passed != (rng.random() < LAPSE))
        probes += 1
    return probes, search.outcome()
