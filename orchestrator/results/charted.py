"""A series as its chart names it, found in one query that makes no objects: data is read often."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.results.models import Series

_NAMES = """
SELECT series.id, series.case_id, c.key, c.label, series.host_id, host.name, metric.key,
       benchmark.slug, project.id, project.slug, project.default_branch, project.fetched_at
"""
_FROM = """
FROM results_series series
JOIN benchmarks_case c ON c.id = series.case_id
JOIN fleet_host host ON host.id = series.host_id
JOIN results_metric metric ON metric.id = series.metric_id
JOIN benchmarks_benchmark benchmark ON benchmark.id = series.benchmark_id
JOIN benchmarks_project project ON project.id = benchmark.project_id
WHERE project.team_id = %s AND """

#: All that can change in what a history of the default branch says.
_MARK = """
, concat_ws(' ',
    (SELECT concat_ws(' ', count(*), sum(n), sum(suspect), sum(invalid), max(at),
                      sum(position::int8 * commit_id))
     FROM results_point WHERE series_id = series.id AND position IS NOT NULL),
    (SELECT concat_ws(' ', count(*), max(revised_at)) FROM results_changepoint
     WHERE series_id = series.id),
    (SELECT at FROM results_serieslook WHERE series_id = series.id),
    (SELECT concat_ws(' ', count(*), max(id::text)) FROM results_baseline
     WHERE series_id = series.id OR case_id = series.case_id))
"""

_BY_NAMES = """benchmark.slug = %s AND c.key = %s AND host.name = %s AND metric.key = %s
    AND (%s IS NULL OR project.slug = %s) LIMIT 2"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """`id` is 0 for a series of which nothing was measured."""

    id: int
    case_id: int
    case: str
    label: str
    host_id: UUID
    host: str
    metric: str
    benchmark: str
    project_id: int
    project: str
    default_branch: str
    fetched_at: datetime | None


def charted(member: Member, series: int) -> Charted:
    """NotFoundError where the team has no such series."""
    found, _ = charted_marked(member, series)
    return found


def charted_marked(member: Member, series: int) -> tuple[Charted, str]:
    """With a mark that is another one once anything in its history along the default branch is."""
    rows = _read(member, _MARK, "series.id = %s", [series])
    if not rows:
        raise NotFoundError("there is no such series in this team")
    return rows[0]


def charted_by_names(
    member: Member, *, benchmark: str, project: str | None, case: str, host: str, metric: str
) -> Charted | None:
    """None unless there is one alone."""
    names = [benchmark, case, host, metric, project, project]
    found = _read(member, ", ''", _BY_NAMES, names)
    return found[0][0] if len(found) == 1 else None


def charted_series(series: Series) -> Charted:
    """Of a series at hand with all that belongs to it."""
    project: Project = series.benchmark.project
    return Charted(
        id=series.pk or 0,
        case_id=series.case.pk,
        case=series.case.key,
        label=series.case.label,
        host_id=series.host.pk,
        host=series.host.name,
        metric=series.metric.key,
        benchmark=series.benchmark.slug,
        project_id=project.pk,
        project=project.slug,
        default_branch=project.default_branch,
        fetched_at=project.fetched_at,
    )


def _read(
    member: Member, mark: str, condition: str, parameters: Sequence[int | str | None]
) -> list[tuple[Charted, str]]:
    names = list(Charted.__dataclass_fields__)
    with connection.cursor() as cursor:
        cursor.execute(_NAMES + mark + _FROM + condition, [member.team.pk, *parameters])
        return [
            (Charted(**dict(zip(names, row, strict=True))), told)
            for *row, told in cursor.fetchall()
        ]
