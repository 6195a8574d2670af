"""The noise of a trial as a calibration of the host measured it."""

import math

from orchestrator.fleet.selectors import load_host_changes
from orchestrator.results.models import Calibration, Series


def load_trial_noise(series: Series) -> float:
    """Return one sigma of a trial of this series, as a share; 0 without a calibration.

    Only calibrations with the same benchmark, from after the last change of the host. They measure
    the difference of two trials, whose noise is √2 times that of one.
    """
    known = Calibration.objects.filter(
        host=series.host,
        benchmark=series.benchmark_id,
        epoch=load_host_changes(series.host).count(),
    ).exclude(readings={})
    newest = known.order_by("-at").first()
    reading = newest.readings.get(series.case.key, {}) if newest is not None else {}
    sigma = reading.get(series.metric.key, {}).get("sigma", 0.0)
    return float(sigma) / math.sqrt(2)
