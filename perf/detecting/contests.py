"""What each detector makes of the same series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from perf.detecting.detectors import Detector
from perf.detecting.made import Labelled, one_step, planted, quiet
from perf.detecting.real import labelled
from perf.detecting.scores import TOLERANCE, Score, score_of

#: Of what is made for the delay: noise, size of the step.
NOISE, STEP = 0.02, 0.05
#: Points of a new level that confirm it, and how many more are waited for.
CONFIRMING, MORE = 3, 3
WATCHED = 15
LONG = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many series of each kind."""

    planted: int
    quiet: int
    steps: int
    timed: int
    duels: int


FULL = Extent(planted=1000, quiet=1000, steps=200, timed=9, duels=1000)
SHORT = Extent(planted=20, quiet=20, steps=10, timed=3, duels=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of one detector. `delays`: points of the new level until it was found; None: not in time."""

    made: Score
    real: Score
    false_histories: float
    false_alarms_per_1000: float
    delays: list[int | None]
    ms_per_1000: float

    def found_within(self, points: int) -> float:
        """The share of steps found with so many points of the new level."""
        return sum(delay is not None and delay <= points for delay in self.delays) / len(
            self.delays
        )

    @property
    def median_delay(self) -> float:
        """Of those that were found; not a number where none was."""
        known = [delay for delay in self.delays if delay is not None]
        return median(known) if known else float("nan")


class Contests:
    """The series, made once for all detectors."""

    def __init__(self, extent: Extent, seed: int) -> None:
        rngs = [np.random.default_rng([seed, kind]) for kind in range(4)]
        self._made = [planted(rngs[0], number) for number in range(extent.planted)]
        self._quiet = [quiet(rngs[1], number) for number in range(extent.quiet)]
        self._steps = [
            one_step(rngs[2], noise=NOISE, step=STEP, after=WATCHED) for _ in range(extent.steps)
        ]
        self._long = [
            (100 * np.exp(rngs[3].normal(0, NOISE, LONG))).tolist() for _ in range(extent.timed)
        ]
        self._real = labelled()

    def result(self, detector: Detector) -> Result:
        made = detector.find([series.values for series in self._made])
        real = detector.find([series.values for series in self._real])
        quiet_ones = detector.find([series.values for series in self._quiet]).alarms
        points = sum(len(series.values) for series in self._quiet)
        return Result(
            made=_score(self._made, made.alarms),
            real=_score(self._real, real.alarms),
            false_histories=sum(bool(alarms) for alarms in quiet_ones) / len(quiet_ones),
            false_alarms_per_1000=1000 * sum(map(len, quiet_ones)) / points,
            delays=self._delays(detector),
            ms_per_1000=1000 * median(detector.find(self._long).seconds),
        )

    def _delays(self, detector: Detector) -> list[int | None]:
        lengths = range(1, WATCHED + 1)
        cut = [
            series.values[: series.changes[0] + length]
            for series in self._steps
            for length in lengths
        ]
        alarms = iter(detector.find(cut).alarms)
        return [
            next((length for length, hit in hits if hit), None)
            for series in self._steps
            if (hits := [(length, _hits(series, next(alarms))) for length in lengths])
        ]


def _hits(series: Labelled, alarms: Sequence[int]) -> bool:
    return any(abs(alarm - series.changes[0]) <= TOLERANCE for alarm in alarms)


def _score(many: Sequence[Labelled], alarms: Sequence[Sequence[int]]) -> Score:
    scores = [score_of(series.changes, found) for series, found in zip(many, alarms, strict=True)]
    return sum(scores, Score())
