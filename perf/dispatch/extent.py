"""The size of the benchmark: the whole, or its shortest form, which checks that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """`window_s`: how long each candidate is kept busy in each round.

    The matrix has `matrix_cases` cases of two commits, `matrix_rounds` times; it is measured
    `matrix_times` times.
    """

    hosts: int
    rounds: int
    window_s: float
    latencies: int
    matrix_cases: int
    matrix_rounds: int
    matrix_times: int
    trial_s: float
    warmup_s: float


FULL = Extent(
    hosts=20,
    rounds=3,
    window_s=15,
    latencies=20,
    matrix_cases=6,
    matrix_rounds=3,
    matrix_times=2,
    trial_s=4,
    warmup_s=1,
)

SHORT = Extent(
    hosts=2,
    rounds=1,
    window_s=0,
    latencies=1,
    matrix_cases=3,
    matrix_rounds=1,
    matrix_times=1,
    trial_s=0.8,
    warmup_s=0.2,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExtent:
    """`window_s`: how long the services are measured in each state of the fleet.

    Each job is in a phase of `quiet_s`, and then in the next one.
    """

    hosts: int
    window_s: float
    quiet_s: float


FULL_FLEET = FleetExtent(hosts=1000, window_s=40, quiet_s=60)
SHORT_FLEET = FleetExtent(hosts=4, window_s=3, quiet_s=2)
