"""Reads of the values of single trials."""

from collections.abc import Collection, Iterable
from uuid import UUID

from orchestrator.results.models import Metric, Reading


def load_values(
    trials: Iterable[UUID], keys: Collection[str] | None = None
) -> dict[UUID, dict[str, float]]:
    """Return the readings of trials: trial id → metric key → value; all metrics without `keys`.

    A trial without any of them is omitted.
    """
    wanted = Metric.objects.all() if keys is None else Metric.objects.filter(key__in=list(keys))
    names = dict(wanted.values_list("pk", "key"))
    rows = Reading.objects.filter(pk__in=list(trials)).values_list("pk", "metrics", "values")
    by_trial = {
        trial: {
            names[metric]: value
            for metric, value in zip(metrics, values, strict=True)
            if metric in names
        }
        for trial, metrics, values in rows
    }
    return {trial: values for trial, values in by_trial.items() if values}
