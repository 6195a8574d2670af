"""The values of a run of one commit: the median of each primary metric, by case and host."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import UUID

from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

#: A run with more trials shows its values only in reports and histories.
MOST_TRIALS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseValues:
    """`values`: each metric of `RunValues` with its value, None if it was not reported.

    They are of the `usable` trials; without any, of the disturbed ones.
    """

    case: str
    host: str
    measured: int
    usable: int
    values: tuple[tuple[Metric, float | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValues:
    metrics: tuple[Metric, ...]
    rows: tuple[CaseValues, ...]


def load_run_values(run: Run) -> RunValues | None:
    """Return the values so far; None before the first trial, and for a run of many trials."""
    trials = list(
        Trial.objects.filter(job__run=run, state=TrialState.MEASURED)
        .order_by("job__host__name", "case__label", "case")
        .values_list("job__host__name", "case__label", "pk", "validity")[: MOST_TRIALS + 1]
    )
    if not 0 < len(trials) <= MOST_TRIALS:
        return None
    metrics = find_metrics(get_stored_spec(run.definition).primary_metrics)
    readings = load_values((pk for _, _, pk, _ in trials), [each.key for each in metrics])
    groups: dict[tuple[str, str], list[tuple[UUID, str]]] = defaultdict(list)
    for host, case, pk, validity in trials:
        groups[host or "", case].append((pk, validity))
    rows = (
        _summarise(host, case, group, readings, metrics) for (host, case), group in groups.items()
    )
    return RunValues(metrics=metrics, rows=tuple(rows))


def _summarise(
    host: str,
    case: str,
    trials: Sequence[tuple[UUID, str]],
    readings: Mapping[UUID, Mapping[str, float]],
    metrics: Sequence[Metric],
) -> CaseValues:
    usable = [pk for pk, validity in trials if validity != Validity.INVALID]
    chosen = usable or [pk for pk, _ in trials]
    by_metric = {
        each: [readings[pk][each.key] for pk in chosen if each.key in readings.get(pk, {})]
        for each in metrics
    }
    return CaseValues(
        case=case,
        host=host,
        measured=len(trials),
        usable=len(usable),
        values=tuple((each, median(got) if got else None) for each, got in by_metric.items()),
    )
