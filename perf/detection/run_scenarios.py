"""The scenarios of simulated runs, by what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perf.detection.run_rates import Scenario
from perf.detection.simulated_trials import PlantedChange, Variation

NOISES = (0.01, 0.02, 0.04, 0.06)
CASES = (1, 5, 20, 60)
MARGIN = 0.03
_TYPICAL = 0.02
#: What disturbs trials besides their noise.
_DISTURBANCES: Sequence[Mapping[str, float]] = (
    {"drift": 0.02},
    {"order": 0.04},
    {"outliers": 0.05},
    {"drift": 0.02, "order": 0.04, "outliers": 0.05},
)
BUILD_NOISES = (0.005, 0.01, 0.02)


def _vary(noise: float) -> Variation:
    return Variation(noise=noise)


def _plant(size: float, cases: int = 1) -> PlantedChange:
    return PlantedChange(size=size, cases=cases)


#: Runs of a commit against itself.
UNCHANGED: Mapping[str, Sequence[Scenario]] = {
    "sizes": [Scenario(variation=_vary(noise), cases=cases) for cases in CASES for noise in NOISES],
    "metrics": [
        Scenario(variation=_vary(noise), metrics=metrics)
        for metrics in ("1", "3+5", "8")
        for noise in (0.02, 0.06)
    ],
    "endings": [
        Scenario(variation=_vary(noise), ending=ending)
        for ending in ("rounds", "screened")
        for noise in (0.02, 0.06)
    ],
    "disturbances": [
        Scenario(variation=Variation(noise=_TYPICAL, **each)) for each in _DISTURBANCES
    ],
    "builds": [
        Scenario(variation=Variation(noise=_TYPICAL, builds=builds)) for builds in BUILD_NOISES
    ],
    "runs": [
        Scenario(variation=Variation(noise=0.01, runs=0.02), ending=ending)
        for ending in ("one run a side", "three runs a side")
    ],
}
#: Runs with one or more changed cases.
CHANGED: Mapping[str, Sequence[Scenario]] = {
    "margin": [
        Scenario(
            variation=_vary(noise),
            cases=1,
            metrics="1",
            change=_plant(sign * MARGIN),
            # The rate is near its limit, and the runs of others say nothing about it.
            weight=4,
            compared=False,
        )
        for sign in (1, -1)
        for noise in (0.01, 0.015, 0.02, 0.03)
    ],
    "one of 20": [
        Scenario(variation=_vary(noise), change=_plant(size))
        for size in (MARGIN, 0.05, 0.10)
        for noise in NOISES
    ],
    "one of 20, better": [Scenario(variation=_vary(_TYPICAL), change=_plant(-0.05))],
    "one of 20, endings": [
        Scenario(variation=_vary(noise), ending=ending, change=_plant(0.05))
        for ending in ("rounds", "screened")
        for noise in (0.02, 0.04)
    ],
    "one of 20, one of 3 metrics": [
        Scenario(
            variation=_vary(noise),
            change=PlantedChange(size=0.05, cases=1, first_metric_only=True),
        )
        for noise in (0.02, 0.04)
    ],
    "one of 1 and of 60": [
        Scenario(variation=_vary(noise), cases=cases, change=_plant(0.05))
        for cases in (1, 60)
        for noise in NOISES
    ],
    "five of 20": [
        Scenario(variation=_vary(noise), ending=ending, change=_plant(0.05, cases=5))
        for ending in ("rounds", "decided")
        for noise in (0.03, 0.05)
    ],
    "one of 20, disturbed": [
        Scenario(variation=Variation(noise=_TYPICAL, **_DISTURBANCES[-1]), change=_plant(0.05))
    ],
}
