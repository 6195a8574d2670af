"""Reads of the values of single trials."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from orchestrator.results.models import Metric, Reading


def load_values(
    trials: Iterable[UUID], keys: Collection[str] | None = None
) -> dict[UUID, dict[str, float]]:
    """Return the readings of trials: trial id → metric key → value; all metrics without `keys`.

    A trial without any of them is omitted.
    """
    readings = Reading.objects.filter(pk__in=list(trials))
    if keys is not None:
        return _load_some_values(readings, keys)
    names = dict(Metric.objects.values_list("pk", "key"))
    by_trial = {
        trial: {
            names[metric]: value
            for metric, value in zip(metrics, values, strict=True)
            if metric in names
        }
        for trial, metrics, values in readings.values_list("pk", "metrics", "values")
    }
    return {trial: values for trial, values in by_trial.items() if values}


def _load_some_values(
    readings: QuerySet[Reading], keys: Collection[str]
) -> dict[UUID, dict[str, float]]:
    """The database selects the values: a trial may have a hundred metrics, of which three count."""
    names = dict(Metric.objects.filter(key__in=list(keys)).values_list("pk", "key"))
    columns = [RawSQL('"values"[array_position("metrics", %s)]', [metric]) for metric in names]
    by_trial = {
        trial: {
            name: value
            for name, value in zip(names.values(), values, strict=True)
            if value is not None
        }
        for trial, *values in readings.values_list("pk", *columns)
    }
    return {trial: values for trial, values in by_trial.items() if values}
