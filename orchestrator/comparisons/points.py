"""The points of one side of a comparison: what was measured of a commit, by place and likeness."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection

from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.sides import Side


class Place(NamedTuple):
    """`host` is the text of its id: as one of Python's it is slow to look up."""

    host: str
    case: int


class Likeness(NamedTuple):
    """What has to be equal for two points to be like for like."""

    epoch: int
    configuration: int


class Values(NamedTuple):
    """Of one metric: values, and the block of each; 0 where it has none."""

    values: list[float]
    blocks: list[int]


@dataclass(slots=True)
class Measured:
    """All metrics of one side at one place, under one likeness; metric key → values."""

    place: Place
    likeness: Likeness
    at: float
    suspect: int = 0
    invalid: int = 0
    metrics: dict[str, Values] = field(default_factory=dict)


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

_VALUES = 'point."values", point.blocks'
_VALUES_BELOW = """
    CASE WHEN cardinality(point."values") < %s THEN point."values" END,
    CASE WHEN cardinality(point."values") < %s THEN point.blocks END
"""
#: In place of values of which a point has too many.
NOT_READ = Values([], [])

#: The points of one side at each place.
Found = dict[Place, dict[Likeness, Measured]]
#: Which points of a side count.
Counts = Callable[[Place, Likeness], bool]


def points_of(
    benchmark: Benchmark,
    side: Side,
    *,
    metrics: Collection[str] | None = None,
    places: Counts | None = None,
    below: int | None = None,
) -> Found:
    """The points of a side, of some metrics or of all; `places` says which of them count.

    With `below`, those of a point that has so many values or more are NOT_READ.
    """
    conditions, given = _conditions(benchmark, side, metrics)
    values = _VALUES if below is None else _VALUES_BELOW
    with connection.cursor() as cursor:
        query = _POINTS.format(conditions=conditions, values=values)
        cursor.execute(query, given if below is None else [below, below, *given])
        rows = cursor.fetchall()
    found: Found = {}
    for host, case, metric, epoch, configuration, at, suspect, invalid, values, blocks in rows:
        place, likeness = Place(host, case), Likeness(epoch, configuration)
        if places is not None and not places(place, likeness):
            continue
        here = found.get(place)
        if here is None:
            here = found[place] = {}
        measured = here.get(likeness)
        if measured is None:
            measured = here[likeness] = Measured(place, likeness, at, suspect, invalid)
        measured.metrics[metric] = NOT_READ if values is None else Values(values, blocks)
    return found


def _conditions(
    benchmark: Benchmark, side: Side, metrics: Collection[str] | None
) -> tuple[str, list[Any]]:
    """SQL of our own words only, and what is given for its places."""
    found: list[tuple[str, Any]] = [
        ("point.commit_id = %s", side.commit.pk),
        ("series.benchmark_id = %s", benchmark.pk),
    ]
    if side.case is not None:
        found.append(("series.case_id = %s", side.case.pk))
    if side.host is not None:
        found.append(("series.host_id = %s", side.host.pk))
    if side.profile is not None:
        found.append(("host.profile_id = %s", side.profile.pk))
    if metrics is not None:
        found.append(("metric.key = ANY(%s)", list(metrics)))
    return " AND ".join(text for text, _ in found), [value for _, value in found]
