"""Pitwall's change detector and alternatives: each returns the indices of its alarms."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.changes import find_changes
from perf.harness.environments import build_alternatives_venv, read_version

OTAVA = "apache-otava"
RIVALS = "detection"
WORKER = Path(__file__).with_name("otava_worker.py")
#: Perfherder: how many values before and after an index are used, and the threshold for t.
BEFORE_LEAST, BEFORE_MOST, AFTER, T = 12, 24, 12, 7.0
THRESHOLD = 0.05

Series = Sequence[float]
Alarms = list[int]


@dataclass(frozen=True, slots=True)
class Detection:
    """The alarms of each series, which of them are certain, and the CPU seconds for each."""

    alarms: list[Alarms]
    alerts: list[Alarms]
    seconds: list[float]


@dataclass(frozen=True, slots=True)
class Detector:
    """`title` for tables, and a function that finds changes in many series."""

    title: str
    find: Callable[[Sequence[Series]], Detection]


def list_detectors() -> list[Detector]:
    """Return Pitwall's detector and then the alternatives. Otava is installed if it is missing."""
    python = build_alternatives_venv(RIVALS) / "python"
    return [
        Detector("Pitwall", _detect_with_pitwall),
        Detector(f"Otava {read_otava_version()}", lambda many: _detect_with_otava(python, many)),
        Detector("t-test, Perfherder", _build_timed_run(_detect_with_perfherder)),
        Detector("5 % to the previous", _build_timed_run(_detect_with_threshold)),
    ]


def read_otava_version() -> str:
    return read_version(OTAVA, RIVALS)


def _build_timed_run(find: Callable[[Series], Alarms]) -> Callable[[Sequence[Series]], Detection]:
    def run(many: Sequence[Series]) -> Detection:
        alarms, seconds = [], []
        for values in many:
            began = time.process_time()
            alarms.append(find(values))
            seconds.append(time.process_time() - began)
        return Detection(alarms, alarms, seconds)

    return run


def _detect_with_pitwall(many: Sequence[Series]) -> Detection:
    detection = Detection([], [], [])
    for values in many:
        began = time.process_time()
        points = find_changes(values).points
        detection.seconds.append(time.process_time() - began)
        detection.alarms.append([change.index for change in points])
        detection.alerts.append([change.index for change in points if change.kind == "alert"])
    return detection


def _detect_with_otava(python: Path, many: Sequence[Series]) -> Detection:
    """Use one separate process for all series, so that its imports are not counted."""
    done = subprocess.run(
        [python, WORKER],
        input=json.dumps([list(values) for values in many]),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    return Detection(answer["alarms"], answer["alarms"], answer["seconds"])


def _detect_with_perfherder(values: Series) -> Alarms:
    """Return indices whose t exceeds T and both neighbours' t; near values have more weight."""
    series = np.asarray(values, dtype=np.float64)
    places = range(BEFORE_LEAST, series.size - AFTER + 1)
    t = np.zeros(series.size + 1)
    for at in places:
        t[at] = _compute_t(series[max(0, at - BEFORE_MOST) : at][::-1], series[at : at + AFTER])
    return [at for at in places if t[at] > T and t[at] >= t[at - 1] and t[at] > t[at + 1]]


def _compute_t(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    (mean_0, error_0), (mean_1, error_1) = _weigh(before), _weigh(after)
    error = np.sqrt(error_0 + error_1)
    difference = abs(mean_1 - mean_0)
    if error == 0:
        return float(np.inf) if difference else 0.0
    return float(difference / error)


def _weigh(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and squared standard error, with weights that fall linearly with the distance."""
    n = values.size
    weights = np.arange(n, 0, -1) / n
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights)) * n / (n - 1)
    return mean, variance / n


def _detect_with_threshold(values: Series) -> Alarms:
    series = np.asarray(values, dtype=np.float64)
    moved = np.abs(series[1:] / series[:-1] - 1) > THRESHOLD
    return [int(at) + 1 for at in np.flatnonzero(moved)]
