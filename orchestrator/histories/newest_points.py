"""The newest points of many series at once, for an overview and a benchmark: one query for all."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import build_project_condition
from orchestrator.benchmarks.models import Benchmark, Case, Definition
from orchestrator.benchmarks.selectors import load_stored_spec

#: The number of series on an overview, and of the newest commits of each.
MOST_CELLS = 300
OVERVIEW_COMMITS = 16
#: A commit may have several points. Only a limit on rows, not on commits, is read from the index.
_OVERVIEW_ROWS = 24
#: So many points of each series of a benchmark are read.
_BENCHMARK_ROWS = 30
#: The metric of a cell: the first of these that was measured, otherwise the oldest one. The rate
#: of an open loop is that of its definition.
_CLOSED = ("capacity.rate", "requests.rate", "latency.p50", "latency.p99")
_OPEN = ("capacity.rate", "latency.p99", "latency.p50", "requests.rate")

#: One series for each case on each host.
_ONE_METRIC = """
    SELECT DISTINCT ON (series.case_id, series.host_id)
        series.id, series.benchmark_id, series.case_id, series.host_id, metric.key
    FROM benchmark
    JOIN results_series series ON series.benchmark_id = benchmark.id
    JOIN results_metric metric ON metric.id = series.metric_id
    ORDER BY series.case_id, series.host_id, array_position(
        CASE WHEN series.case_id = ANY(%s) OR (benchmark.open_loop AND benchmark.id <> ALL(%s))
        THEN %s::text[] ELSE %s::text[] END, metric.key
    ), series.id
"""
#: The series of some cases and metrics.
_SOME_METRICS = """
    SELECT series.id, series.benchmark_id, series.case_id, series.host_id, metric.key
    FROM benchmark
    JOIN results_series series ON series.benchmark_id = benchmark.id
    JOIN results_metric metric ON metric.id = series.metric_id
    WHERE series.case_id = ANY(%s) AND metric.key = ANY(%s)
"""

#: Options of a definition that may change the loop of a case.
_CHANGES_LOOP = """
    jsonb_path_exists(benchmarks_definition.spec,
        'lax $.options.*.*.load ? (exists(@.rate) || exists(@.steps) || exists(@.search))')
"""

# Cells of all benchmarks take turns, so that none of them leaves no place for another one.
_NEWEST = """
WITH benchmark AS MATERIALIZED (
    SELECT benchmark.id, benchmark.slug, benchmark.title, project.slug AS project_slug,
        project.name AS project_name,
        (SELECT jsonb_path_exists(spec, 'lax $.load.**.rate ? (@ != null)')
         FROM benchmarks_definition WHERE benchmark_id = benchmark.id
         ORDER BY version DESC LIMIT 1) AS open_loop
    FROM benchmarks_benchmark benchmark
    JOIN benchmarks_project project ON project.id = benchmark.project_id
    WHERE {condition}
), chosen AS ({chosen}), numbered AS (
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
    newest.at, newest."values", newest.kinds
FROM shown
JOIN benchmark ON benchmark.id = shown.benchmark_id
JOIN benchmarks_case benchmark_case ON benchmark_case.id = shown.case_id
CROSS JOIN LATERAL (
    SELECT (array_agg(at ORDER BY position DESC))[1] AS at,
        array_agg(value ORDER BY position) AS "values",
        array_agg(epoch::int8 << 32 | configuration::int8 & 4294967295 ORDER BY position) AS kinds
    FROM (
        SELECT DISTINCT ON (position) position, at, epoch, configuration,
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
class CommitValue:
    """The newest value of a commit.

    Values of two kinds are not comparable: they differ in the epoch of the host or in the
    configuration.
    """

    value: float
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPoints:
    """The newest points of a case on a host, oldest first, of one metric.

    They are those along the default branch. `at` is the time of the newest one; None without
    points. `cells` is the number of series that its benchmark could show.
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
    at: datetime | None
    points: tuple[CommitValue, ...]


def load_overview_points(
    member: Member, *, project: int | None = None, limit: int = MOST_CELLS
) -> list[NewestPoints]:
    """Return at most `limit` series, by benchmark, case and host: one metric of each."""
    condition, owner = build_project_condition(member)
    mixed, open_cases = _find_open_cases(member, project)
    return _load_series(
        f"{condition} (%s::bigint IS NULL OR project.id = %s)",
        _ONE_METRIC,
        [owner, project, project, open_cases, mixed, list(_OPEN), list(_CLOSED), limit,
         _OVERVIEW_ROWS, OVERVIEW_COMMITS],
    )  # fmt: skip


def _find_open_cases(member: Member, project: int | None) -> tuple[list[int], list[int]]:
    """Return the benchmarks whose options may change the loop, and their cases with an open one."""
    benchmarks = Benchmark.objects.filter(member.sees("project"))
    if project is not None:
        benchmarks = benchmarks.filter(project=project)
    newest = Definition.objects.filter(benchmark__in=benchmarks).order_by(
        "benchmark_id", "-version"
    )
    mixed = Definition.objects.annotate(mixed=RawSQL(_CHANGES_LOOP, [])).filter(
        pk__in=newest.distinct("benchmark_id").values("pk"), mixed=True
    )
    specs = {
        benchmark: load_stored_spec(pk, digest)
        for benchmark, pk, digest in mixed.values_list("benchmark_id", "pk", "digest")
    }
    if not specs:
        return [], []
    cases = Case.objects.filter(benchmark__in=specs).values_list("pk", "benchmark", "parameters")
    return list(specs), [
        pk for pk, benchmark, parameters in cases if specs[benchmark].get_loop(parameters) == "open"
    ]


def load_benchmark_points(
    benchmark: Benchmark, cases: Collection[Case], metrics: Collection[str]
) -> list[NewestPoints]:
    """Return the measured series of these cases and metrics, by case and host."""
    keys = [case.pk for case in cases]
    series = _load_series(
        "benchmark.id = %s",
        _SOME_METRICS,
        [benchmark.pk, keys, list(metrics), None, _BENCHMARK_ROWS, _BENCHMARK_ROWS],
    )
    return [each for each in series if each.points]


def _load_series(condition: str, chosen: str, values: list[Any]) -> list[NewestPoints]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST.format(condition=condition, chosen=chosen), values)
        return [_build_series(*row) for row in cursor.fetchall()]


def _build_series(
    pk: int, case: int, host: str, host_name: str, metric: str, cells: int, case_key: str,
    case_label: str, project: str, project_name: str, benchmark: str, title: str,
    at: datetime | None, values: Sequence[float] | None, kinds: Sequence[int] | None,
) -> NewestPoints:  # fmt: skip
    return NewestPoints(
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
        at=at,
        points=tuple(
            CommitValue(value=value, kind=kind)
            for value, kind in zip(values or (), kinds or (), strict=True)
        ),
    )
