"""How often golden runs quarantine an unchanged host, and how soon they report a slow drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.drift import (
    FIRST_VALUES,
    MIN_EARLIER,
    REMEMBERED,
    Drift,
    measure_drift,
    measure_slow_drift,
)

Floats = NDArray[np.float64]

NOISES = (0.005, 0.015, 0.02, 0.03, 0.05)
#: The metrics of one case, which are judged together; the default tolerance of a golden run.
METRICS, TOLERANCE = 3, 0.05
#: The latest references that a value is compared with, as in `calibration.golden`.
EARLIER = 30
NIGHTS_A_YEAR = 365
#: A slow drift, and the number of runs within which it is reported.
DRIFT, IN_TIME = 0.002, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenRuns:
    """By the noise of a value: quarantines of an unchanged host in ten years of nightly runs.

    `slow_alarms`: false reports of a slow drift in ten years; after each, a member resets the
    references. `reported`: the share of hosts with a drift of DRIFT a run that are reported in
    time, if it begins after the references, and from the first run on.
    """

    noise: float
    quarantines: float
    slow_alarms: float
    reported: float
    reported_from_the_first: float


class Host:
    """The golden runs of a host, judged as `calibration.golden` judges them."""

    def __init__(self) -> None:
        self._references: list[Floats] = []
        self._unusual: Floats | None = None
        self.quarantines = 0
        self.slow_alarms = 0

    def judge(self, values: Floats) -> bool:
        """Judge one run. Return whether it is measured again at once."""
        known = self._measure(values)
        unusual = any(drift is not None and drift.drifted for drift in known)
        before, self._unusual = self._unusual, values if unusual else None
        if unusual:
            if before is not None and self._is_confirmed(known, before):
                self.quarantines += 1
                self._unusual = None
            return before is None
        if self._has_slow_drift(values):
            self.slow_alarms += 1
            self._references.clear()
        self._references.append(values)
        return False

    def _measure(self, values: Floats) -> list[Drift | None]:
        earlier = self._references[-EARLIER:]
        if len(earlier) < MIN_EARLIER:
            return []
        return [
            measure_drift(value, column, tolerance=TOLERANCE, values=values.size)
            for value, column in zip(values.tolist(), np.transpose(earlier).tolist(), strict=True)
        ]

    def _is_confirmed(self, known: Sequence[Drift | None], before: Floats) -> bool:
        return any(
            drift is not None and first is not None and drift.is_confirmed_by(first)
            for drift, first in zip(known, self._measure(before), strict=True)
        )

    def _has_slow_drift(self, values: Floats) -> bool:
        if len(self._references) < FIRST_VALUES:
            return False
        first = np.transpose(self._references[:FIRST_VALUES]).tolist()
        later = np.transpose([*self._references[FIRST_VALUES:][-REMEMBERED:], values]).tolist()
        drifts = (
            measure_slow_drift(*columns, values=values.size)
            for columns in zip(first, later, strict=True)
        )
        return any(drift is not None and drift.drifted for drift in drifts)


def measure_golden_runs(hosts: int, years: int, seed: int) -> list[GoldenRuns]:
    """Return the figures of each noise; each of `hosts` is simulated for some years."""
    rng = np.random.default_rng([seed, 69])
    return [_measure_noise(rng, hosts, years, noise) for noise in NOISES]


def _measure_noise(rng: np.random.Generator, hosts: int, years: int, noise: float) -> GoldenRuns:
    nights, decades = years * NIGHTS_A_YEAR, hosts * years / 10
    unchanged = [simulate_unchanged_host(rng, noise, nights) for _ in range(hosts)]
    late, early = (
        [is_drift_reported(rng, noise, begin) for _ in range(10 * hosts)]
        for begin in (FIRST_VALUES + EARLIER, 0)
    )
    return GoldenRuns(
        noise=noise,
        quarantines=sum(host.quarantines for host in unchanged) / decades,
        slow_alarms=sum(host.slow_alarms for host in unchanged) / decades,
        reported=sum(late) / len(late),
        reported_from_the_first=sum(early) / len(early),
    )


def simulate_unchanged_host(rng: np.random.Generator, noise: float, nights: int) -> Host:
    host = Host()
    for _ in range(nights):
        while host.judge(_draw(rng, noise)):
            pass
    return host


def is_drift_reported(rng: np.random.Generator, noise: float, begin: int) -> bool:
    """Return whether a drift that begins after `begin` runs is reported within IN_TIME runs."""
    host = Host()
    for run in range(begin + IN_TIME):
        level = math.log1p(DRIFT) * max(0, run - begin + 1)
        before = host.slow_alarms + host.quarantines
        while host.judge(_draw(rng, noise, level)):
            pass
        if run >= begin and host.slow_alarms + host.quarantines > before:
            return True
    return False


def _draw(rng: np.random.Generator, noise: float, level: float = 0.0) -> Floats:
    return np.exp(rng.normal(level, noise, METRICS))
