"""The results of calibrations: the noise of a host by case and metric."""

import logging
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from uuid import UUID

from django.db import transaction

from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.calibration.build_noise import store_build_noise
from orchestrator.calibration.golden import count_epoch
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import load_ended_calibrations
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, RunState, TrialState, describe_run_state
from orchestrator.stats.noise import FEWEST_PAIRS, estimate_noise

logger = logging.getLogger(__name__)

#: The two trials of each A/A pair, in order, by case key.
Pairs = dict[str, list[tuple[UUID, UUID]]]

#: Case key → metric key → the fields of a Noise.
Readings = dict[str, dict[str, dict[str, float]]]


def judge_calibrations() -> None:
    """Judge ended calibrations. May run twice: each result is stored once."""
    for run in load_ended_calibrations().filter(calibration=None):
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
    readings, epoch = _load_readings(run), count_epoch(host, run)
    with transaction.atomic():
        calibration, is_new = Calibration.objects.get_or_create(
            run=run,
            defaults={
                "host": host,
                "benchmark": run.definition.benchmark,
                "commit": run.variants.get().commit,
                "epoch": epoch,
                "readings": readings,
                "message": "" if readings else _explain_nothing_measured(run),
                "at": utc_now(),
            },
        )
        if is_new:
            store_build_noise(run, host, epoch)
    return calibration


def _load_readings(run: Run) -> Readings:
    spec = get_stored_spec(run.definition)
    pairs = _load_pairs(run)
    trials = [trial for group in pairs.values() for trial in chain(*group)]
    values = load_values(trials, spec.primary_metrics)
    parameters = dict(
        run.definition.benchmark.cases.filter(key__in=pairs).values_list("key", "parameters")
    )
    readings: Readings = defaultdict(dict)
    for case, group in sorted(pairs.items()):
        for key in spec.list_case_metrics(parameters[case]):
            differences = list(_iterate_differences(group, values, key))
            noise = estimate_noise(differences, excluded=run.rounds // 2 - len(differences))
            if noise is not None:
                readings[case][key] = asdict(noise)
    return dict(readings)


def _iterate_differences(
    pairs: list[tuple[UUID, UUID]], values: dict[UUID, dict[str, float]], key: str
) -> Iterator[float]:
    """Yield ln(second / first) of complete pairs; values that are not positive are left out."""
    for pair in pairs:
        first, second = (values.get(trial, {}).get(key, 0.0) for trial in pair)
        if first > 0 and second > 0:
            yield math.log(second / first)


def _load_pairs(run: Run) -> Pairs:
    """Pair rounds 1 and 2 of a case, 3 and 4, and so on; one invalid trial voids its pair."""
    trials = Trial.objects.filter(
        job__run=run, state=TrialState.MEASURED, validity__in=COUNTED_VALIDITIES
    ).values_list("case__key", "round", "pk")
    groups: dict[tuple[str, int], list[UUID]] = defaultdict(list)
    for case, number, trial in trials.order_by("case__key", "round"):
        groups[case, (number - 1) // 2].append(trial)
    pairs: Pairs = defaultdict(list)
    for (case, _), both in groups.items():
        if len(both) == 2:
            pairs[case].append((both[0], both[1]))
    return pairs


def _explain_nothing_measured(run: Run) -> str:
    if run.state != RunState.FINISHED:
        return f"{describe_run_state(run.state)}{': ' if run.message else ''}{run.message}"[:2000]
    return f"no case has {FEWEST_PAIRS} pairs whose trials are both valid"
