"""The page of histories: the selected series, their charts, and the table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.histories.histories import HistoryChoices, load_series_set
from orchestrator.histories.marked_changes import PlacedAnnotation
from orchestrator.histories.reports import History, HistoryBreak, HistoryPoint
from orchestrator.loadtools.metrics import Metric, find_metric
from orchestrator.results.models import Series
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.hosts.facts import FactChange, build_fact_change

T = TypeVar("T")
#: More lines are indistinguishable.
MAX_SERIES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionField:
    """A choice of one or several; `shown` summarises it in few words."""

    name: str
    title: str
    options: tuple[Option, ...]

    @property
    def summary(self) -> str:
        chosen = [each.label for each in self.options if each.chosen]
        return f"{chosen[0]} +{len(chosen) - 1}" if len(chosen) > 1 else "".join(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """A series on a branch, drawn as line `number` (from 1) of a chart."""

    number: int
    series: Series
    metric: Metric
    branch: str
    label: str

    @property
    def data_url(self) -> str:
        return (
            f"{reverse('history-data', args=[self.series.pk])}?{urlencode({'branch': self.branch})}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The lines of one metric."""

    metric: Metric
    lines: tuple[ChartLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A point with the events between it and the one before it."""

    point: HistoryPoint
    compare_url: str | None
    point_url: str | None
    history_break: HistoryBreak | None
    changes: tuple[FactChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationRow:
    """A note at a commit, and its point; None if the commit was not measured."""

    annotation: PlacedAnnotation
    point_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySelection:
    """The series that an address selects; by default the first of each list."""

    fields: tuple[SelectionField, ...]
    lines: tuple[ChartLine, ...]
    omitted: int
    missing: Metric | None

    @property
    def charts(self) -> tuple[Chart, ...]:
        metrics = dict.fromkeys(each.metric for each in self.lines)
        return tuple(
            Chart(metric=metric, lines=tuple(x for x in self.lines if x.metric == metric))
            for metric in metrics
        )


def select_history(
    member: Member, benchmark: Benchmark, choices: HistoryChoices, query: QueryDict
) -> HistorySelection:
    cases = choose_items(choices.cases, "key", query.getlist("case"))
    hosts = choose_items(choices.hosts, "name", query.getlist("host"))
    metrics = choose_items(choices.metrics, "key", query.getlist("metric"))
    known = _list_branches(benchmark)
    branches = [name for name in known if name in query.getlist("branch")] or known[:1]
    series_by_key = {
        (each.metric.key, each.case_id, each.host_id): each
        for each in load_series_set(member, benchmark, cases=cases, hosts=hosts, metrics=metrics)
    }
    combined = [
        (series_by_key[metric.key, case.pk, host.pk], metric, branch)
        for metric, case, host, branch in product(metrics, cases, hosts, branches)
        if (metric.key, case.pk, host.pk) in series_by_key
    ]
    several = [len(each) > 1 for each in (cases, hosts, branches)]
    return HistorySelection(
        fields=(
            _build_selection_field(
                "case", "Case", [(e.key, e.label, e in cases) for e in choices.cases]
            ),
            _build_selection_field(
                "host", "Host", [(e.name, e.name, e in hosts) for e in choices.hosts]
            ),
            _build_selection_field(
                "metric", "Metric", [(e.key, e.title, e in metrics) for e in choices.metrics]
            ),
            _build_selection_field(
                "branch", "Branch", [(name, name, name in branches) for name in known]
            ),
        ),
        lines=tuple(
            _build_chart_line(number, *each, several)
            for number, each in enumerate(combined[:MAX_SERIES], start=1)
        ),
        omitted=max(0, len(combined) - MAX_SERIES),
        missing=_find_missing_metric(metrics, query.getlist("metric")),
    )


def _list_branches(benchmark: Benchmark) -> list[str]:
    """Return the branches, the default branch first."""
    project = benchmark.project
    return list(dict.fromkeys([project.default_branch, *(name for name, _ in project.branches)]))


def _build_chart_line(
    number: int, series: Series, metric: Metric, branch: str, several: Sequence[bool]
) -> ChartLine:
    label = _label(series, branch, several)
    return ChartLine(number=number, series=series, metric=metric, branch=branch, label=label)


def choose_items(items: Sequence[T], attribute: str, wanted: Sequence[str]) -> list[T]:
    """Return the wanted items in their own order; if there are none, the first."""
    chosen = [item for item in items if getattr(item, attribute) in wanted]
    return chosen or list(items[:1])


def _find_missing_metric(metrics: Iterable[Metric], wanted: Sequence[str]) -> Metric | None:
    """Return a wanted metric that exists but was never measured here; None if there is none."""
    keys = {metric.key for metric in metrics}
    known = (find_metric(key) for key in wanted if key not in keys)
    return next((metric for metric in known if metric is not None), None)


def _build_selection_field(
    name: str, title: str, options: Iterable[tuple[str, str, bool]]
) -> SelectionField:
    shown = (Option(value=value, label=label, chosen=chosen) for value, label, chosen in options)
    return SelectionField(name=name, title=title, options=tuple(shown))


def _label(series: Series, branch: str, several: Sequence[bool]) -> str:
    """Return what distinguishes this line on its chart; its full name if it is the only one."""
    parts = [series.case.label, series.host.name, branch]
    labels = [part for part, needed in zip(parts, several, strict=True) if needed and part]
    return " · ".join(labels or [f"{parts[0]} on {parts[1]}"])


def build_point_rows(history: History) -> list[PointRow]:
    """Return the rows, newest first."""
    changes: list[list[FactChange]] = [[] for _ in history.points]
    for each in reversed(history.changes):
        changes[each.before].append(build_fact_change(each.at, each.changed))
    breaks = {each.before: each for each in history.breaks}
    rows = [
        PointRow(
            point=point,
            compare_url=compare_url(history, point),
            point_url=build_point_url(history, point),
            history_break=breaks.get(index),
            changes=tuple(changes[index]),
        )
        for index, point in enumerate(history.points)
    ]
    return rows[::-1]


def compare_url(history: History, point: HistoryPoint) -> str | None:
    """Return the address of the comparison with the point before.

    It is None for the first point, or without valid trials.
    """
    if point.before is None or point.value is None:
        return None
    query = {
        "benchmark": build_benchmark_key(history.benchmark),
        "baseline": point.before.sha,
        "contender": point.commit.sha,
    }
    return f"{reverse('compare')}?{urlencode(query)}"


def build_point_url(history: History, point: HistoryPoint) -> str | None:
    if history.series is None:
        return None
    address = reverse("history-point", args=[history.series, point.commit.short_sha])
    return f"{address}?{urlencode({'branch': history.branch})}"


def build_annotation_rows(
    marks: Iterable[PlacedAnnotation], measured: Mapping[int, int]
) -> list[AnnotationRow]:
    """Return the notes, newest commit first. `measured`: commit → a series that has it."""
    ordered = sorted(marks, key=lambda each: -1 if each.position is None else each.position)
    return [
        AnnotationRow(annotation=each, point_url=_build_annotated_point_url(each, measured))
        for each in reversed(ordered)
    ]


def _build_annotated_point_url(mark: PlacedAnnotation, measured: Mapping[int, int]) -> str | None:
    series = measured.get(mark.commit)
    return reverse("history-point", args=[series, mark.short_sha]) if series else None


def build_chart_config(selection: HistorySelection, *, relative: bool) -> dict[str, Any]:
    """Return the configuration of the script: where the data of each line is."""
    return {
        "relative": relative,
        "charts": [
            {
                "metric": chart.metric.key,
                "title": chart.metric.title,
                "unit": chart.metric.unit,
                "better": chart.metric.better,
                "lines": [
                    {
                        "number": line.number,
                        "label": line.label,
                        "data_url": line.data_url,
                        "point": reverse("history-point", args=[line.series.pk, "SHA"]),
                        "commit": reverse("history-commit", args=[line.series.pk, "SHA"]),
                        "branch": line.branch,
                    }
                    for line in chart.lines
                ],
            }
            for chart in selection.charts
        ],
    }
