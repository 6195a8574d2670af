"""The newest points of many series of a benchmark, for an overview: one query for all of them."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.fleet.models import Host

#: So many commits of each series are read.
COMMITS = 30

_NEWEST = """
SELECT s.case_id, s.host_id, m.key, p.position, p.mean, p.mean_log, p.at
FROM results_series s JOIN results_metric m ON m.id = s.metric_id
CROSS JOIN LATERAL (
  SELECT position, mean, mean_log, at FROM results_point
  WHERE series_id = s.id AND position IS NOT NULL AND trials > 0
  ORDER BY position DESC LIMIT %s
) p
WHERE s.benchmark_id = %s AND m.key = ANY(%s) AND s.case_id = ANY(%s)
ORDER BY s.id, p.position DESC, p.at DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPoints:
    """The values of a metric of a case on a host, along the default branch, oldest commit first.

    Of several points of a commit, the newest counts. `at` is the time of the newest one.
    """

    case: Case
    host: Host
    metric: str
    values: tuple[float, ...]
    at: datetime


def load_newest_points(
    benchmark: Benchmark, cases: Collection[Case], metrics: Collection[str]
) -> list[NewestPoints]:
    """Return the measured series of these cases and metrics."""
    by_case = {case.pk: case for case in cases}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [COMMITS, benchmark.pk, list(metrics), list(by_case)])
        rows = cursor.fetchall()
    hosts = Host.objects.in_bulk({row[1] for row in rows})
    commits: dict[tuple[int, object, str], dict[int, tuple[float, datetime]]] = {}
    for case, host, metric, position, mean, mean_log, at in rows:
        value = mean if mean_log is None else math.exp(mean_log)
        commits.setdefault((case, host, metric), {}).setdefault(position, (value, at))
    return [
        NewestPoints(
            case=by_case[case],
            host=hosts[host],
            metric=metric,
            values=tuple(value for value, _ in reversed(points.values())),
            at=next(iter(points.values()))[1],
        )
        for (case, host, metric), points in commits.items()
    ]
