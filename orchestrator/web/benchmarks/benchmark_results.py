"""The results of a benchmark for its page: newest values, sparklines, latest runs, badges."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from cli.pitwall.units import format_value
from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Definition
from orchestrator.benchmarks.selectors import load_stored_spec
from orchestrator.histories.newest_points import NewestPoints, load_benchmark_points
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.results.models import Series
from orchestrator.runs.selectors import load_runs
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.runs.presenters import build_run_rows
from orchestrator.web.sparklines import Sparkline, build_sparkline

CASES_SHOWN = 12
RUNS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestValue:
    """A cell: the newest value of a metric, and its sparkline if there are several."""

    text: str
    line: Sparkline | None
    commits: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A case on a host; a cell is None if its metric was not measured or does not decide."""

    case: str
    host: str
    at: datetime
    cells: tuple[NewestValue | None, ...]


def build_results_context(
    member: Member, benchmark: Benchmark, definition: Definition
) -> dict[str, Any]:
    spec = load_stored_spec(definition.pk, definition.digest)
    keys = spec.primary_metrics
    metrics = find_metrics(keys)
    measured = Series.objects.filter(benchmark=benchmark, metric__key__in=keys).values("case")
    cases = list(benchmark.cases.filter(pk__in=measured).order_by("pk")[: CASES_SHOWN + 1])
    own = {case.pk: spec.list_case_metrics(case.parameters) for case in cases}
    points = [
        each
        for each in load_benchmark_points(benchmark, cases[:CASES_SHOWN], keys)
        if each.metric in own[each.case]
    ]
    runs = load_runs(member).filter(definition__benchmark=benchmark)[:RUNS_SHOWN]
    badge = [benchmark.project.slug, benchmark.slug]
    return {
        "result_metrics": metrics,
        "result_rows": _build_rows(benchmark, metrics, points),
        "more_cases": len(cases) > CASES_SHOWN,
        "latest_runs": build_run_rows(member, runs),
        "verdict_badge": reverse("badge-verdict", args=badge),
        "value_badge": reverse("badge-value", args=badge) if points else "",
        "badges_url": f"{reverse('project-badges', args=[benchmark.project.slug])}"
        f"?{urlencode({'benchmark': benchmark.slug})}",
    }


def _build_rows(
    benchmark: Benchmark, metrics: tuple[Metric, ...], points: list[NewestPoints]
) -> list[ResultRow]:
    return [
        _build_row(benchmark, metrics, list(part))
        for _, part in groupby(points, key=lambda each: (each.case, each.host))
    ]


def _build_row(
    benchmark: Benchmark, metrics: tuple[Metric, ...], part: list[NewestPoints]
) -> ResultRow:
    by_metric = {each.metric: each for each in part}
    return ResultRow(
        case=part[0].case_label,
        host=part[0].host_name,
        at=max(each.at for each in part if each.at is not None),
        cells=tuple(
            _build_cell(benchmark, metric, by_metric[metric.key])
            if metric.key in by_metric
            else None
            for metric in metrics
        ),
    )


def _build_cell(benchmark: Benchmark, metric: Metric, points: NewestPoints) -> NewestValue:
    query = {
        "benchmark": build_benchmark_key(benchmark),
        "case": points.case_key,
        "host": points.host_name,
        "metric": metric.key,
    }
    values = [each.value for each in points.points]
    return NewestValue(
        text=format_value(values[-1], metric.unit),
        line=build_sparkline(values),
        commits=len(values),
        url=f"{reverse('history')}?{urlencode(query)}",
    )
