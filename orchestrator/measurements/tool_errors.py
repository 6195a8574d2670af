"""Errors of load tools: their measurements of servers with known values."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.measurements.readings import values_of
from orchestrator.runs.models import Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState

#: The newest trials show the current errors of a tool.
NEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricError:
    """measured / known − 1 of one metric: the median, minimum and maximum over the trials."""

    metric: Metric
    median: float
    low: float
    high: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolErrors:
    """A version of a load tool and its errors, in the order of the metric registry."""

    tool: str
    version: str
    errors: tuple[MetricError, ...]


def tool_errors(member: Member) -> list[ToolErrors]:
    """Return the errors of each tool and version that measured definitions with `known` in the
    team.

    They use the newest NEWEST trials that are not invalid; a tool without such trials is omitted.
    """
    trials = _trials(member)
    tools = trials.order_by().values_list("provenance__tool__name", "provenance__tool__version")
    found = [
        ToolErrors(tool=name, version=version or "", errors=tuple(_errors(trials, name, version)))
        for name, version in tools.distinct()
        if name
    ]
    return sorted(
        (each for each in found if each.errors), key=lambda each: (each.tool, each.version)
    )


def errors_of(
    samples: Iterable[tuple[Mapping[str, float], Mapping[str, float]]],
) -> list[MetricError]:
    """Compute the errors from (measured, known) of each trial; skip metrics without a
    measurement."""
    errors: dict[str, list[float]] = defaultdict(list)
    for measured, known in samples:
        for key in measured.keys() & known.keys():
            errors[key].append(measured[key] / known[key] - 1)
    return [_metric_error(metric, errors[metric.key]) for metric in metrics_of(errors)]


def _metric_error(metric: Metric, errors: list[float]) -> MetricError:
    return MetricError(
        metric=metric,
        median=median(errors),
        low=min(errors),
        high=max(errors),
        trials=len(errors),
    )


def _trials(member: Member) -> QuerySet[Trial]:
    """Return trials, newest first. Stored definitions without known values have no `known`."""
    return Trial.objects.filter(
        job__run__team=member.team,
        job__run__definition__spec__has_key="known",
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    ).order_by("-started_at", "-pk")


def _errors(trials: QuerySet[Trial], name: str, version: str | None) -> Iterator[MetricError]:
    mine = trials.filter(provenance__tool__name=name, provenance__tool__version=version)
    newest = list(mine.values_list("pk", "job__run__definition_id")[:NEWEST])
    known = _known({definition for _, definition in newest})
    keys = {key for each in known.values() for key in each}
    values = values_of([trial for trial, _ in newest], keys)
    yield from errors_of((values.get(trial, {}), known[definition]) for trial, definition in newest)


def _known(definitions: set[UUID]) -> dict[UUID, Mapping[str, float]]:
    found = Definition.objects.in_bulk(list(definitions))
    return {pk: spec_of(definition).known for pk, definition in found.items()}
