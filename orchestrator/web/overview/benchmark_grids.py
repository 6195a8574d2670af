"""The grids of the first page: each case on each host, with its newest values and last verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from django.urls import reverse

from cli.pitwall.units import format_value
from orchestrator.comparisons.formats import SYMBOLS
from orchestrator.histories.newest_points import NewestPoints
from orchestrator.loadtools.metrics import Metric, find_metric
from orchestrator.web.sparklines import draw_change_sparkline


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """`verdict` is empty if there is none."""

    url: str
    path: str
    value: str
    verdict: str
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    label: str
    cells: tuple[GridCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkGrid:
    """The cases of a benchmark by host; `omitted` cells are not shown."""

    key: str
    title: str
    project: str
    metric: Metric | None
    hosts: tuple[str, ...]
    rows: tuple[GridRow, ...]
    omitted: int


def build_benchmark_grids(
    series: Sequence[NewestPoints], verdicts: Mapping[tuple[int, str], str]
) -> list[BenchmarkGrid]:
    """Return the grids in the order of the series. Cells link to their histories."""
    return [
        _build_benchmark(key, list(part), verdicts)
        for key, part in groupby(series, key=lambda each: f"{each.project}/{each.benchmark}")
    ]


def _build_benchmark(
    key: str, series: Sequence[NewestPoints], verdicts: Mapping[tuple[int, str], str]
) -> BenchmarkGrid:
    hosts = {each.host: each.host_name for each in sorted(series, key=lambda each: each.host_name)}
    address = reverse("history")
    rows = []
    for _, part in groupby(series, key=lambda each: each.case):
        of_case = {each.host: each for each in part}
        cells = [
            _build_cell(key, of_case[host], verdicts, address) if host in of_case else None
            for host in hosts
        ]
        rows.append(GridRow(label=next(iter(of_case.values())).case_label, cells=tuple(cells)))
    first = series[0]
    return BenchmarkGrid(
        key=key,
        title=first.benchmark_title,
        project=first.project_name,
        metric=find_metric(first.metric),
        hosts=tuple(hosts.values()),
        rows=tuple(rows),
        omitted=first.cells - len(series),
    )


def _build_cell(
    key: str,
    series: NewestPoints,
    verdicts: Mapping[tuple[int, str], str],
    address: str,
) -> GridCell:
    query = {"benchmark": key, "case": series.case_key, "host": series.host_name,
             "metric": series.metric}  # fmt: skip
    verdict = verdicts.get((series.case, series.host), "")
    metric = find_metric(series.metric)
    unit = metric.unit if metric else ""
    return GridCell(
        url=f"{address}?{urlencode(query)}",
        path=draw_change_sparkline(series.points),
        value=format_value(series.points[-1].value, unit) if series.points else "–",
        verdict=verdict,
        symbol=SYMBOLS.get(verdict, ""),
    )
