"""Loads the points of one side of a comparison, grouped by case, host and comparability key.

A point keeps only the newest values of a commit. For a single run, the values of a commit that was
measured very often are read from the trials of that run instead.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import connection

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.sides import Side
from orchestrator.measurements.comparability import hash_block, hash_build
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.removals import load_run_removals
from orchestrator.results.models import RemovalKind
from orchestrator.results.models.series import MOST_VALUES
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity


class CaseOnHost(NamedTuple):
    """`host` is the id as text, because hashing UUID objects is slow."""

    host: str
    case: int


class ComparabilityKey(NamedTuple):
    """Two points are comparable if these are equal."""

    epoch: int
    configuration: int


class MetricValues(NamedTuple):
    """The values of one metric, with block, place and build of each; 0: it has none.

    The place is that of the trial in the order of its job, from 1. The build is a number that
    identifies it.
    """

    values: list[float]
    blocks: list[int]
    places: list[int]
    builds: list[int]


@dataclass(slots=True)
class PointGroup:
    """All metrics of one side for a case on a host, in one epoch and configuration.

    `at` is in seconds since 1970. `metrics`: metric key → values.
    """

    place: CaseOnHost
    comparability: ComparabilityKey
    at: float
    suspect: int = 0
    invalid: int = 0
    metrics: dict[str, MetricValues] = field(default_factory=dict)


# As plain rows: model instances cost more time than the query.
_POINTS = """
SELECT series.host_id::text, series.case_id, metric.key, point.epoch, point.configuration,
       extract(epoch FROM point.at)::float8, point.suspect, point.invalid, {values}
FROM results_point point
JOIN results_series series ON series.id = point.series_id
JOIN results_metric metric ON metric.id = series.metric_id
JOIN fleet_host host ON host.id = series.host_id
WHERE {conditions}
"""

_VALUES = 'point."values", point.blocks, point.places, point.builds'
_VALUES_BELOW = """
    CASE WHEN cardinality(point."values") < %s THEN point."values" END,
    CASE WHEN cardinality(point."values") < %s THEN point.blocks END,
    CASE WHEN cardinality(point."values") < %s THEN point.places END,
    CASE WHEN cardinality(point."values") < %s THEN point.builds END
"""
#: The digest of the build of a trial.
_DIGEST = "provenance__build__digest"
#: Replaces the values of a point that has too many of them.
NOT_READ = MetricValues([], [], [], [])

PointIndex = dict[CaseOnHost, dict[ComparabilityKey, PointGroup]]
#: Whether a point of a side counts.
PointFilter = Callable[[CaseOnHost, ComparabilityKey], bool]
#: Metric key → each value with its block, its place and its build.
_RunValues = Mapping[str, list[tuple[float, int, int, int]]]


def load_points(
    benchmark: Benchmark,
    side: Side,
    *,
    metrics: Collection[str] | None = None,
    counts: PointFilter | None = None,
    below: int | None = None,
) -> PointIndex:
    """The points of a side, of these metrics or of all; `counts` filters them.

    With `below`, the values of a point that has this many or more are NOT_READ.
    """
    conditions, parameters = _build_conditions(benchmark, side, metrics)
    values = _VALUES if below is None else _VALUES_BELOW
    with connection.cursor() as cursor:
        query = _POINTS.format(conditions=conditions, values=values)
        cursor.execute(query, parameters if below is None else [*[below] * 4, *parameters])
        rows = cursor.fetchall()
    points: PointIndex = {}
    for host, case, metric, epoch, configuration, at, suspect, invalid, *arrays in rows:
        place, comparability = CaseOnHost(host, case), ComparabilityKey(epoch, configuration)
        if counts is not None and not counts(place, comparability):
            continue
        groups = points.setdefault(place, {})
        group = groups.get(comparability)
        if group is None:
            group = groups[comparability] = PointGroup(place, comparability, at, suspect, invalid)
        group.metrics[metric] = NOT_READ if arrays[0] is None else MetricValues(*arrays)
    return points


def _build_conditions(
    benchmark: Benchmark, side: Side, metrics: Collection[str] | None
) -> tuple[str, list[Any]]:
    """SQL of constant text, and the parameters of its placeholders."""
    conditions: list[tuple[str, Any]] = [
        ("point.commit_id = %s", side.commit.pk),
        ("series.benchmark_id = %s", benchmark.pk),
    ]
    if side.case is not None:
        conditions.append(("series.case_id = %s", side.case.pk))
    if side.host is not None:
        conditions.append(("series.host_id = %s", side.host.pk))
    if side.profile is not None:
        conditions.append(("host.profile_id = %s", side.profile.pk))
    if metrics is not None:
        conditions.append(("metric.key = ANY(%s)", list(metrics)))
    return " AND ".join(text for text, _ in conditions), [value for _, value in conditions]


def load_run_points(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    run: Run,
    *,
    metrics: Collection[str] | None,
    filters: tuple[PointFilter | None, PointFilter | None],
) -> tuple[PointIndex, PointIndex]:
    """The points of both sides, with all values that the run measured.

    A release that each new commit is compared with is measured in many runs. Its points have many
    values, nearly all from other runs. These points are not read; the values come from the trials
    of the run. If its single trials were removed, the points are used
    as they are.
    """
    points = _load_both(benchmark, sides, metrics, filters, below=MOST_VALUES)
    if not any(map(_has_unread, points)):
        return points
    if RemovalKind.TRIALS in load_run_removals(run.pk):
        return _load_both(benchmark, sides, metrics, filters)
    first, second = (_load_run_values(run, side.commit, metrics) for side in sides)
    return (
        _replace_values(points[0], first, other=points[1]),
        _replace_values(points[1], second, other=points[0]),
    )


def _load_both(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    metrics: Collection[str] | None,
    filters: tuple[PointFilter | None, PointFilter | None],
    *,
    below: int | None = None,
) -> tuple[PointIndex, PointIndex]:
    first, second = (
        load_points(benchmark, side, metrics=metrics, counts=counts, below=below)
        for side, counts in zip(sides, filters, strict=True)
    )
    return first, second


def _has_unread(points: PointIndex) -> bool:
    return any(
        values is NOT_READ
        for groups in points.values()
        for group in groups.values()
        for values in group.metrics.values()
    )


def _load_run_values(
    run: Run, commit: Commit, metrics: Collection[str] | None
) -> Mapping[CaseOnHost, _RunValues]:
    trials = Trial.objects.filter(
        job__run=run, variant__commit=commit, state=TrialState.MEASURED
    ).exclude(validity=Validity.INVALID)
    columns = ("pk", "host_id", "case_id", "job_id", "round", "position", _DIGEST)
    rows = list(trials.order_by("pk").values_list(*columns))
    readings = load_values([row[0] for row in rows], metrics)
    values: dict[CaseOnHost, dict[str, list[tuple[float, int, int, int]]]] = {}
    for pk, host, case, job, number, position, digest in rows:
        facts = hash_block(job, number), position + 1, hash_build(digest or "")
        for metric, value in readings.get(pk, {}).items():
            of_case = values.setdefault(CaseOnHost(str(host), case), {})
            of_case.setdefault(metric, []).append((value, *facts))
    return values


def _replace_values(
    points: PointIndex, run_values: Mapping[CaseOnHost, _RunValues], *, other: PointIndex
) -> PointIndex:
    replaced = dict(points)
    for place in points.keys() & run_values.keys():
        # A run has one definition, and its jobs one epoch of their host: both sides are comparable.
        groups = points[place]
        common = [groups[key] for key in groups.keys() & other.get(place, {}).keys()]
        newest = max(common or groups.values(), key=lambda group: group.at)
        metrics = {
            metric: MetricValues(*map(list, zip(*trials, strict=True)))
            for metric, trials in run_values[place].items()
        }
        replaced[place] = {newest.comparability: replace(newest, metrics=metrics)}
    return replaced
