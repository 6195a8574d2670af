"""The series of a chart with its names, in one query without model instances: it is read often."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor, build_project_condition
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.histories.marked_changes import (
    PARTS,
    SHIFTS,
    Shifts,
    read_shifts,
)
from orchestrator.results.models import Series

_NAMES = f"""
SELECT {SHIFTS}, series.id, series.case_id, c.key, c.label, series.host_id, host.name, metric.key,
       benchmark.slug, project.id, project.slug, project.default_branch, project.fetched_at
"""
_FROM = """
FROM results_series series
JOIN benchmarks_case c ON c.id = series.case_id
JOIN fleet_host host ON host.id = series.host_id
JOIN results_metric metric ON metric.id = series.metric_id
JOIN benchmarks_benchmark benchmark ON benchmark.id = series.benchmark_id
JOIN benchmarks_project project ON project.id = benchmark.project_id
WHERE """

#: Changes with everything in a history along the default branch, except names.
_MARK = f"""
SELECT concat_ws(' ', count(*), sum(trials), sum(suspect), sum(invalid), max(at),
                 sum(position::int8 * commit_id),
                 (SELECT jsonb_build_array({SHIFTS}) FROM results_series series WHERE id = %s))
FROM results_point WHERE series_id = %s AND position IS NOT NULL
"""

_BY_NAMES = """benchmark.slug = %s AND c.key = %s AND host.name = %s AND metric.key = %s
    AND (%s::text IS NULL OR project.slug = %s) LIMIT 2"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesHeader:
    """A series with its names; `id` is 0 if it has no measurements."""

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
    shifts: Shifts


def load_series_header(member: Member, series: int) -> SeriesHeader:
    """Return a series; NotFoundError if the team has none with this id."""
    headers = _read(member, "series.id = %s", [series])
    if not headers:
        raise NotFoundError.build_for_team("series")
    return headers[0]


def read_history_version(series: int) -> str:
    """Return the version key of the history of a series along the default branch."""
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [series, series])
        return str(cursor.fetchone()[0])


def find_series_header_by_names(
    member: Member, *, benchmark: str, project: str | None, case: str, host: str, metric: str
) -> SeriesHeader | None:
    """Return the series with these names; None unless exactly one matches."""
    names = [benchmark, case, host, metric, project, project]
    headers = _read(member, _BY_NAMES, names)
    return headers[0] if len(headers) == 1 else None


def build_empty_header(series: Series) -> SeriesHeader:
    """Return a series that is not stored, since it has no measurements."""
    project: Project = series.benchmark.project
    return SeriesHeader(
        id=0,
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
        shifts=Shifts(),
    )


def _read(
    member: Member, condition: str, parameters: Sequence[int | str | None]
) -> list[SeriesHeader]:
    *names, _ = SeriesHeader.__dataclass_fields__
    seen, whose = build_project_condition(member)
    with connection.cursor() as cursor:
        cursor.execute(_NAMES + _FROM + seen + condition, [whose, *parameters])
        headers = [
            SeriesHeader(
                **dict(zip(names, row[PARTS:], strict=True)), shifts=read_shifts(*row[:PARTS])
            )
            for row in cursor.fetchall()
        ]
    return [_hide_authors(each) for each in headers] if isinstance(member, Visitor) else headers


def _hide_authors(series: SeriesHeader) -> SeriesHeader:
    """Remove the names of the authors of annotations."""
    written = tuple(replace(each, author=None) for each in series.shifts.annotations)
    return replace(series, shifts=replace(series.shifts, annotations=written))
