"""The results of calibrations: the noise of a host by case and metric."""

import logging
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from uuid import UUID

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.calibration.golden import epoch_of
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.readings import values_of
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import ended_calibrations
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, RunState, TrialState
from orchestrator.stats.noise import FEWEST_PAIRS, noise_of

logger = logging.getLogger(__name__)

#: The two trials of each A/A pair, in order, by case key.
Pairs = dict[str, list[tuple[UUID, UUID]]]

#: Case key → metric key → the fields of a Noise.
Readings = dict[str, dict[str, dict[str, float]]]


def tick() -> None:
    """Judge ended calibrations. May run twice: each result is stored once."""
    for run in ended_calibrations().filter(calibration=None):
        try:
            judge_calibration(run)
        except Exception:
            logger.exception("the calibration %s cannot be judged", run.pk)


def judge_calibration(run: Run) -> Calibration | None:
    """Store the result of an ended calibration once. None if its host is unknown.

    Pairs of a run that failed or was cancelled count as well: they were measured.
    """
    host = Host.objects.filter(jobs__run=run).first()
    if host is None:
        return None
    readings = _readings(run)
    found, _ = Calibration.objects.get_or_create(
        run=run,
        defaults={
            "host": host,
            "benchmark": run.definition.benchmark,
            "commit": run.variants.get().commit,
            "epoch": epoch_of(host, run),
            "readings": readings,
            "message": "" if readings else _why_nothing(run),
            "at": utc_now(),
        },
    )
    return found


def _readings(run: Run) -> Readings:
    keys = primary_of(spec_of(run.definition))
    pairs = _pairs(run)
    values = values_of([trial for found in pairs.values() for trial in chain(*found)], keys)
    readings: Readings = defaultdict(dict)
    for case, found in sorted(pairs.items()):
        for key in keys:
            noise = noise_of(list(_differences(found, values, key)))
            if noise is not None:
                readings[case][key] = asdict(noise)
    return dict(readings)


def _differences(
    pairs: list[tuple[UUID, UUID]], values: dict[UUID, dict[str, float]], key: str
) -> Iterator[float]:
    """Yield ln(second / first) of complete pairs; values that are not positive are left out."""
    for pair in pairs:
        first, second = (values.get(trial, {}).get(key, 0.0) for trial in pair)
        if first > 0 and second > 0:
            yield math.log(second / first)


def _pairs(run: Run) -> Pairs:
    """Pair rounds 1 and 2 of a case, 3 and 4, and so on; one invalid trial voids its pair."""
    trials = Trial.objects.filter(
        job__run=run, state=TrialState.MEASURED, validity__in=COUNTED_VALIDITIES
    ).values_list("case__key", "round", "pk")
    found: dict[tuple[str, int], list[UUID]] = defaultdict(list)
    for case, number, trial in trials.order_by("case__key", "round"):
        found[case, (number - 1) // 2].append(trial)
    pairs: Pairs = defaultdict(list)
    for (case, _), both in found.items():
        if len(both) == 2:
            pairs[case].append((both[0], both[1]))
    return pairs


def _why_nothing(run: Run) -> str:
    if run.state != RunState.FINISHED:
        return f"its run is {run.state}{': ' if run.message else ''}{run.message}"[:2000]
    return f"no case has {FEWEST_PAIRS} pairs whose trials are both valid"
