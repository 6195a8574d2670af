"""The results of each detector on the same series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from perf.detection.detectors import Alarms, Detection, Detector
from perf.detection.labelled import load_labelled
from perf.detection.scores import TOLERANCE, Score, compute_score
from perf.detection.synthetic import Labelled, make_planted, make_quiet, make_step

#: For the series that measure the delay: noise, size of the step.
NOISE, STEP = 0.02, 0.05
#: Points of a new level that confirm it, and how many more may follow.
CONFIRMING, MORE = 3, 3
WATCHED = 15
LONG = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The number of series, comparisons and runs of each kind."""

    planted: int
    quiet: int
    steps: int
    timed: int
    comparisons: int
    inconclusive: int
    repeated: int
    powers: int
    builds: int
    runs: int
    golden_hosts: int
    golden_years: int
    confirmations: int
    searches: int
    unequal: int
    capacity_searches: int
    boards: int


FULL = Extent(
    planted=600, quiet=1000, steps=150, timed=9, comparisons=600, inconclusive=25,
    repeated=600, powers=500, builds=3000, runs=1000, golden_hosts=10, golden_years=10,
    confirmations=500, searches=500, unequal=1000, capacity_searches=400, boards=1000,
)  # fmt: skip
SHORT = Extent(
    planted=20, quiet=20, steps=10, timed=3, comparisons=20, inconclusive=1,
    repeated=10, powers=10, builds=20, runs=3, golden_hosts=1, golden_years=1,
    confirmations=5, searches=5, unequal=10, capacity_searches=5, boards=2,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one detector.

    `delays`: points of the new level until detection; None: too late.
    """

    made: Score
    real: Score
    false_histories: float
    false_alarms_per_1000: float
    delays: list[int | None]
    ms_per_1000: float

    def compute_detected_share(self, points: int) -> float:
        """Return the share of steps that are found with this many points of the new level."""
        return sum(delay is not None and delay <= points for delay in self.delays) / len(
            self.delays
        )

    @property
    def median_delay(self) -> float:
        """Return the median of those that were found; NaN if there are none."""
        known = [delay for delay in self.delays if delay is not None]
        return median(known) if known else float("nan")


class Evaluation:
    """The series, generated once for all detectors."""

    def __init__(self, extent: Extent, seed: int) -> None:
        rngs = [np.random.default_rng([seed, kind]) for kind in range(4)]
        self._made = [make_planted(rngs[0], number) for number in range(extent.planted)]
        self._quiet = [make_quiet(rngs[1], number) for number in range(extent.quiet)]
        self._steps = [
            make_step(rngs[2], noise=NOISE, step=STEP, after=WATCHED) for _ in range(extent.steps)
        ]
        self._long = [
            (100 * np.exp(rngs[3].normal(0, NOISE, LONG))).tolist() for _ in range(extent.timed)
        ]
        self._real = load_labelled()

    def results(self, detector: Detector) -> tuple[Result, Result]:
        """Return the results of all alarms, and of the certain ones."""
        made, real = self._detect_all(detector, self._made), self._detect_all(detector, self._real)
        silent, cut = self._detect_all(detector, self._quiet), detector.find(self._cut())
        ms = 1000 * median(detector.find(self._long).seconds)
        return (
            self._result((made.alarms, real.alarms, silent.alarms, cut.alarms), ms),
            self._result((made.alerts, real.alerts, silent.alerts, cut.alerts), ms),
        )

    def _detect_all(self, detector: Detector, many: Sequence[Labelled]) -> Detection:
        return detector.find([series.values for series in many])

    def _result(self, alarms: tuple[list[Alarms], ...], ms_per_1000: float) -> Result:
        made, real, silent, cut = alarms
        points = sum(len(series.values) for series in self._quiet)
        return Result(
            made=_score(self._made, made),
            real=_score(self._real, real),
            false_histories=sum(map(bool, silent)) / len(silent),
            false_alarms_per_1000=1000 * sum(map(len, silent)) / points,
            delays=self._delays(cut),
            ms_per_1000=ms_per_1000,
        )

    def _cut(self) -> list[list[float]]:
        """Return each series with a step as it was after one, two, … points of the new level."""
        return [
            series.values[: series.changes[0] + length]
            for series in self._steps
            for length in range(1, WATCHED + 1)
        ]

    def _delays(self, alarms: list[Alarms]) -> list[int | None]:
        of_one = [alarms[at : at + WATCHED] for at in range(0, len(alarms), WATCHED)]
        return [
            next((at + 1 for at, indices in enumerate(each) if _hits(series, indices)), None)
            for series, each in zip(self._steps, of_one, strict=True)
        ]


def _hits(series: Labelled, alarms: Sequence[int]) -> bool:
    return any(abs(alarm - series.changes[0]) <= TOLERANCE for alarm in alarms)


def _score(many: Sequence[Labelled], alarms: Sequence[Sequence[int]]) -> Score:
    scores = [
        compute_score(series.changes, indices) for series, indices in zip(many, alarms, strict=True)
    ]
    return sum(scores, Score())
