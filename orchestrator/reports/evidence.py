"""Evidence for a report: the series point behind each cell."""

from collections import defaultdict
from collections.abc import Mapping
from uuid import UUID

from orchestrator.reports.pivot_model import Cell, Origin
from orchestrator.reports.report_builder import Report
from orchestrator.reports.report_spec import Measure, TableSpec
from orchestrator.results.models import Series

#: Fallbacks for trials without any stored metric of the report, for example p12.
_USUAL = ("requests.rate", "latency.p50")

#: (case, host) → metric key → series.
Points = Mapping[tuple[int, UUID], Mapping[str, int]]


def load_cell_series(report: Report) -> Points:
    """Return the series of all cells of a report, with one query."""
    origins = {cell.origin for cell in _list_cells(report) if cell.origin is not None}
    if not origins:
        return {}
    rows = Series.objects.filter(
        case__in={origin.case for origin in origins},
        host__in={origin.host for origin in origins},
        metric__key__in={*_list_metrics(report), *_USUAL},
    ).values_list("case_id", "host_id", "metric__key", "pk")
    points: dict[tuple[int, UUID], dict[str, int]] = defaultdict(dict)
    for case, host, metric, series in rows:
        points[case, host][metric] = series
    return points


def find_point_series(points: Points, origin: Origin, metric: str | None) -> int | None:
    """Return the series of the metric; without one, a series with the same trials."""
    known = points.get((origin.case, origin.host), {})
    wanted = (metric or "", *_USUAL)
    return next((known[key] for key in wanted if key in known), None)


def _list_cells(report: Report) -> list[Cell]:
    return [cell for table in report.tables for row in table.rows for cell in row.cells]


def _list_metrics(report: Report) -> set[str]:
    return {measure.metric for table in report.spec.tables for measure in _list_measures(table)}


def _list_measures(table: TableSpec) -> list[Measure]:
    return [*table.metrics, *(each.measure for each in table.columns if each.measure)]
