"""Errors of load tools: their measurements of servers with known values."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.measurements.readings import load_values
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


def load_tool_errors(member: Member) -> list[ToolErrors]:
    """Return the errors of each tool and version that measured definitions with `known` in the
    team.

    They use the newest NEWEST trials that are not invalid; a tool without such trials is omitted.
    """
    trials = _load_trials(member)
    tools = trials.order_by().values_list("provenance__tool__name", "provenance__tool__version")
    tool_errors = [
        ToolErrors(
            tool=name,
            version=version or "",
            errors=tuple(_compute_metric_errors(trials, name, version)),
        )
        for name, version in tools.distinct()
        if name
    ]
    return sorted(
        (each for each in tool_errors if each.errors), key=lambda each: (each.tool, each.version)
    )


def compute_errors(
    samples: Iterable[tuple[Mapping[str, float], Mapping[str, float]]],
) -> list[MetricError]:
    """Compute the errors from (measured, known) of each trial; skip metrics without a
    measurement."""
    errors: dict[str, list[float]] = defaultdict(list)
    for measured, known in samples:
        for key in measured.keys() & known.keys():
            errors[key].append(measured[key] / known[key] - 1)
    return [_build_metric_error(metric, errors[metric.key]) for metric in find_metrics(errors)]


def _build_metric_error(metric: Metric, errors: list[float]) -> MetricError:
    return MetricError(
        metric=metric,
        median=median(errors),
        low=min(errors),
        high=max(errors),
        trials=len(errors),
    )


def _load_trials(member: Member) -> QuerySet[Trial]:
    """Return trials, newest first. Stored definitions without known values have no `known`."""
    return Trial.objects.filter(
        job__run__team=member.team,
        job__run__definition__spec__has_key="known",
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    ).order_by("-started_at", "-pk")


def _compute_metric_errors(
    trials: QuerySet[Trial], name: str, version: str | None
) -> Iterator[MetricError]:
    mine = trials.filter(provenance__tool__name=name, provenance__tool__version=version)
    newest = list(mine.values_list("pk", "job__run__definition_id")[:NEWEST])
    known = _load_known_values({definition for _, definition in newest})
    keys = {key for each in known.values() for key in each}
    values = load_values([trial for trial, _ in newest], keys)
    yield from compute_errors(
        (values.get(trial, {}), known[definition]) for trial, definition in newest
    )


def _load_known_values(definitions: set[UUID]) -> dict[UUID, Mapping[str, float]]:
    by_id = Definition.objects.in_bulk(list(definitions))
    return {pk: read_spec(definition).known for pk, definition in by_id.items()}
