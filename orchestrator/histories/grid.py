"""The newest points of many series at once: one for each case on each host, from one query."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import build_project_condition

MOST_CELLS = 300
POINTS = 16
#: A commit may have several points. Only a limit on rows, not on commits, is read from the index.
_ROWS = 24
#: The metric of a cell: the first of these that was measured, otherwise the oldest one. The rate
#: of an open loop is that of its definition.
_CLOSED = ("capacity.rate", "requests.rate", "latency.p50", "latency.p99")
_OPEN = ("capacity.rate", "latency.p99", "latency.p50", "requests.rate")

# Cells of all benchmarks take turns, so that none of them leaves no place for another one.
_GRID = """
WITH benchmark AS MATERIALIZED (
    SELECT benchmark.id, benchmark.slug, benchmark.title, project.slug AS project_slug,
        project.name AS project_name,
        (SELECT jsonb_path_exists(spec, 'lax $.load.**.rate ? (@ != null)')
         FROM benchmarks_definition WHERE benchmark_id = benchmark.id
         ORDER BY version DESC LIMIT 1) AS open_loop
    FROM benchmarks_benchmark benchmark
    JOIN benchmarks_project project ON project.id = benchmark.project_id
    WHERE {condition} (%s::bigint IS NULL OR project.id = %s)
), chosen AS (
    SELECT DISTINCT ON (series.case_id, series.host_id)
        series.id, series.benchmark_id, series.case_id, series.host_id, metric.key
    FROM benchmark
    JOIN results_series series ON series.benchmark_id = benchmark.id
    JOIN results_metric metric ON metric.id = series.metric_id
    ORDER BY series.case_id, series.host_id, array_position(
        CASE WHEN benchmark.open_loop THEN %s::text[] ELSE %s::text[] END, metric.key
    ), series.id
), numbered AS (
    SELECT chosen.*, host.name AS host_name,
        count(*) OVER (PARTITION BY benchmark_id) AS cells,
        row_number() OVER (PARTITION BY benchmark_id ORDER BY case_id, host.name) AS place
    FROM chosen JOIN fleet_host host ON host.id = chosen.host_id
), shown AS (
    SELECT * FROM numbered ORDER BY place, benchmark_id LIMIT %s
)
SELECT shown.id, shown.case_id, shown.host_id::text, shown.host_name, shown.key, shown.cells,
    benchmark_case.key, benchmark_case.label,
    benchmark.project_slug, benchmark.project_name, benchmark.slug, benchmark.title,
    newest."values", newest.kinds
FROM shown
JOIN benchmark ON benchmark.id = shown.benchmark_id
JOIN benchmarks_case benchmark_case ON benchmark_case.id = shown.case_id
CROSS JOIN LATERAL (
    SELECT array_agg(value ORDER BY position) AS "values",
        array_agg(epoch::int8 << 32 | configuration::int8 & 4294967295 ORDER BY position) AS kinds
    FROM (
        SELECT DISTINCT ON (position) position, epoch, configuration,
            coalesce(exp(mean_log), mean) AS value
        FROM (
            SELECT position, at, epoch, configuration, mean_log, mean
            FROM results_point
            WHERE series_id = shown.id AND position IS NOT NULL AND trials > 0
            ORDER BY position DESC LIMIT %s
        ) latest
        ORDER BY position DESC, at DESC LIMIT %s
    ) point
) newest
ORDER BY benchmark.project_slug, benchmark.slug, shown.case_id, shown.host_name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPoint:
    """The value of a commit.

    Values of two kinds are not comparable: they differ in the epoch of the host or in the
    configuration.
    """

    value: float
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSeries:
    """The newest points of a case on a host, oldest first, of one metric.

    `cells`: the number of series that its benchmark could show.
    """

    id: int
    project: str
    project_name: str
    benchmark: str
    benchmark_title: str
    case: int
    case_key: str
    case_label: str
    host: str
    host_name: str
    metric: str
    cells: int
    points: tuple[GridPoint, ...]


def load_grid_series(
    member: Member, *, project: int | None = None, limit: int = MOST_CELLS
) -> list[GridSeries]:
    """Return at most `limit` series, by benchmark, case and host, from one query."""
    condition, owner = build_project_condition(member)
    values = [owner, project, project, list(_OPEN), list(_CLOSED), limit, _ROWS, POINTS]
    with connection.cursor() as cursor:
        cursor.execute(_GRID.format(condition=condition), values)
        return [_build_series(*row) for row in cursor.fetchall()]


def _build_series(
    pk: int, case: int, host: str, host_name: str, metric: str, cells: int, case_key: str,
    case_label: str, project: str, project_name: str, benchmark: str, title: str,
    values: Sequence[float] | None, kinds: Sequence[int] | None,
) -> GridSeries:  # fmt: skip
    return GridSeries(
        id=pk,
        project=project,
        project_name=project_name,
        benchmark=benchmark,
        benchmark_title=title,
        case=case,
        case_key=case_key,
        case_label=case_label,
        host=host,
        host_name=host_name,
        metric=metric,
        cells=cells,
        points=tuple(
            GridPoint(value=value, kind=kind)
            for value, kind in zip(values or (), kinds or (), strict=True)
        ),
    )
