"""The noise between builds of a host: stored with a calibration, and shown with it."""

from collections import defaultdict
from dataclasses import asdict
from uuid import UUID

from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.fleet.models import Host
from orchestrator.measurements.build_noise import read_build_noise
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Calibration, HostBuildNoise, Series
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState
from orchestrator.runs.trial_order import number_build
from orchestrator.stats.build_noise import BuildNoise, estimate_build_noise


def store_build_noise(run: Run, host: Host, epoch: int) -> None:
    """Store the noise between the builds of a calibration, for its primary metrics."""
    if run.builds == 1:
        return
    values = _load_values(run)
    series = Series.objects.filter(
        host=host, case__in={case for case, _ in values}, metric__key__in={key for _, key in values}
    ).select_related("metric")
    noises = (
        (each, estimate_build_noise(values.get((each.case_id, each.metric.key), ())))
        for each in series
    )
    HostBuildNoise.objects.bulk_create(
        HostBuildNoise(run=run, series=each, epoch=epoch, **asdict(noise))
        for each, noise in noises
        if noise is not None
    )


def load_calibrated_build_noise(calibration: Calibration) -> dict[tuple[str, str], BuildNoise]:
    """Return the noise between builds of a calibration by case key and metric key."""
    rows = HostBuildNoise.objects.filter(run=calibration.run_id)
    return {
        (row.series.case.key, row.series.metric.key): read_build_noise(row)
        for row in rows.select_related("series__case", "series__metric")
    }


def _load_values(run: Run) -> dict[tuple[int, str], list[tuple[int, float]]]:
    """Return case and metric → the number of the build and the value of each trial that counts."""
    spec = get_stored_spec(run.definition)
    trials = list(
        Trial.objects.filter(
            job__run=run, state=TrialState.MEASURED, validity__in=COUNTED_VALIDITIES
        ).select_related("case")
    )
    readings: dict[UUID, dict[str, float]] = load_values(
        [trial.pk for trial in trials], spec.primary_metrics
    )
    values: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    for trial in trials:
        build = number_build(trial.round, run.builds)
        for key in spec.list_case_metrics(trial.case.parameters):
            value = readings.get(trial.pk, {}).get(key, 0.0)
            if value > 0:
                values[trial.case_id, key].append((build, value))
    return values
