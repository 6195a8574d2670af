"""One metric of one case on one host along the commits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from django.db import connection
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host, HostChange
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.histories.annotations import place_annotations
from orchestrator.histories.branches import load_branch_points
from orchestrator.histories.latency_titles import describe_latency
from orchestrator.histories.lines import Line, Points, build_line
from orchestrator.histories.marked_changes import (
    PlacedAnnotation,
    Shifts,
    load_shifts,
)
from orchestrator.histories.reports import (
    History,
    HistoryBreak,
    HistoryChange,
    HistoryPoint,
)
from orchestrator.loadtools.metrics import Metric, find_metric, find_metrics
from orchestrator.measurements.validity_issues import ValidityIssue, count_validity_issues
from orchestrator.results.models import Metric as StoredMetric
from orchestrator.results.models import Series
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.rollup import compute_bands


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChoices:
    """The measured series of a benchmark, as choices for a chart."""

    cases: tuple[Case, ...]
    hosts: tuple[Host, ...]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a history to return.

    At most `limit` points before the commit `before` (the first digits of its hash), by default the
    newest; or the point of the commit `at`; or `limit` points with the commit `around` in the
    middle, none if it has no point. `every`: includes points without a valid trial.
    """

    limit: int | None = None
    before: str = ""
    at: int | None = None
    around: int | None = None
    every: bool = False


_ALL = Part()
#: Large columns, needed only for another branch or to show a case.
_NOT_NEEDED = ("benchmark__project__branches", "host__tuning", "case__parameters")


_CHOICES = """
SELECT concat_ws(' ', count(*), max(id),
                 (SELECT string_agg(name, '|' ORDER BY id) FROM fleet_host WHERE team_id = %s),
                 (SELECT concat_ws('/', count(*), max(hidden_at)) FROM benchmarks_case
                  WHERE benchmark_id = %s AND hidden_at IS NOT NULL))
FROM results_series WHERE benchmark_id = %s
"""


def read_choices_version(benchmark: Benchmark) -> str:
    """Return the version key of `load_history_choices` of the benchmark."""
    with connection.cursor() as cursor:
        cursor.execute(_CHOICES, [benchmark.project.team_id, benchmark.pk, benchmark.pk])
        return str(cursor.fetchone()[0])


def load_history_choices(member: Member, benchmark: Benchmark) -> HistoryChoices:
    series = Series.objects.filter(member.sees("benchmark__project"), benchmark=benchmark)
    keys = set(series.values_list("metric__key", flat=True).distinct())
    return HistoryChoices(
        cases=tuple(benchmark.cases.filter(pk__in=series.values("case"), hidden_at=None)),
        hosts=tuple(Host.objects.filter(pk__in=series.values("host"))),
        metrics=tuple(info for info in find_metrics(keys) if not info.informational),
    )


def load_series_set(
    member: Member,
    benchmark: Benchmark,
    *,
    cases: Sequence[Case],
    hosts: Sequence[Host],
    metrics: Sequence[Metric],
) -> QuerySet[Series]:
    """Return the series of all measured combinations."""
    return Series.objects.filter(
        member.sees("benchmark__project"),
        benchmark=benchmark,
        case__in=cases,
        host__in=hosts,
        metric__key__in=[metric.key for metric in metrics],
    ).select_related("case", "host", "metric", "benchmark__project")


def load_series_or_empty(
    member: Member, benchmark: Benchmark, *, metric_key: str, case: Case, host: Host
) -> Series:
    """Return the series, or one that is not stored if nothing was measured."""
    info = find_metric(metric_key)
    if info is None:
        raise InvalidRequestError(f"there is no metric {metric_key}", field="metric")
    series = load_series_set(member, benchmark, cases=[case], hosts=[host], metrics=[info]).first()
    metric = StoredMetric(key=info.key)
    return series or Series(benchmark=benchmark, case=case, host=host, metric=metric)


def load_series(member: Member, pk: int) -> Series:
    series = (
        Series.objects.filter(member.sees("benchmark__project"), pk=pk)
        .select_related("case", "host", "metric", "benchmark__project")
        .defer(*_NOT_NEEDED)
        .first()
    )
    if series is None:
        raise NotFoundError.build_for_team("series")
    return series


def load_case_history(
    member: Member,
    *,
    benchmark: Benchmark,
    metric_key: str,
    case: Case,
    host: Host,
    branch: str = "",
    part: Part = _ALL,
) -> History:
    """Return the points of one series along a branch, oldest commit first.

    `changes` are changes of the host between two consecutive points.
    """
    series = load_series_or_empty(member, benchmark, metric_key=metric_key, case=case, host=host)
    return load_series_history(series, branch, part)


def load_series_history(series: Series, branch: str = "", part: Part = _ALL) -> History:
    """`load_case_history` for a series from `load_series_set` or `load_series`; empty for one that
    is not stored."""
    info = find_metric(series.metric.key)
    if info is None:
        raise InvalidRequestError(f"the metric {series.metric.key} no longer exists")
    project = series.benchmark.project
    points = load_branch_points(series.pk or 0, project, branch)
    line = build_line(points if part.every else points.rows(np.flatnonzero(points.trials > 0)))
    first, last = _find_reach(line, part)
    shifts = load_shifts(series.pk or 0)
    along_default = branch in ("", project.default_branch)
    written = place_annotations(shifts.annotations, line.points, along_default=along_default)
    return History(
        series=series.pk,
        benchmark=series.benchmark,
        case=series.case,
        host=series.host,
        branch=branch or project.default_branch,
        key=info.key,
        title=info.title,
        unit=info.unit,
        better=info.better,
        points=_build_points(line, first, last, shifts, series, written),
        first=first,
        total=len(line.points),
        changes=_build_host_changes(line, series.host, first, last),
        breaks=_build_breaks(line, first, last),
        excluded=int(points.invalid.sum()),
        unstable=shifts.unstable,
        label=describe_latency(series, line.points),
    )


def _find_reach(line: Line, part: Part) -> tuple[int, int]:
    """Return the indices (from, to) of the points of a part."""
    last = len(line.points)
    if part.at is not None:
        places = np.flatnonzero(line.points.commit == part.at)
        return (int(places[0]), int(places[0]) + 1) if places.size else (0, 0)
    if part.around is not None:
        return _find_surroundings(line, part.around, part.limit or last)
    if part.before:
        shas = Commit.objects.filter(
            pk__in=line.points.commit.tolist(), sha__startswith=part.before.lower()
        )
        places = np.flatnonzero(
            np.isin(line.points.commit, list(shas.values_list("pk", flat=True)))
        )
        if not places.size:
            raise NotFoundError(f"this history has no commit {part.before}")
        last = int(places[0])
    return (0 if part.limit is None else max(0, last - part.limit)), last


def _find_surroundings(line: Line, commit: int, limit: int) -> tuple[int, int]:
    places = np.flatnonzero(line.points.commit == commit)
    if not places.size:
        return (0, 0)
    first = max(0, int(places[0]) - limit // 2)
    return first, min(len(line.points), first + limit)


def _build_points(
    line: Line,
    first: int,
    last: int,
    shifts: Shifts,
    series: Series,
    written: Mapping[int, Sequence[PlacedAnnotation]],
) -> tuple[HistoryPoint, ...]:
    before = _find_previous(line.points)[first:last]
    shown = line.points.rows(slice(first, last))
    wanted = {*shown.commit.tolist(), *line.points.commit[before[before >= 0]].tolist()}
    commits = Commit.objects.in_bulk(wanted)
    issues = _load_validity_issues(series, shown)
    band = compute_bands(shown.run_count, shown.mean, shown.mean_log, shown.m2_log)
    others = np.bincount(line.owner, minlength=len(line.points))[first:last]
    by_commit = {shift.commit: shift for shift in shifts.points}
    baselines = dict([shifts.baseline] if shifts.baseline else [])
    return tuple(
        HistoryPoint(
            commit=commits[commit],
            before=commits[int(line.points.commit[before[i]])] if before[i] >= 0 else None,
            at=datetime.fromtimestamp(int(shown.at[i]), UTC),
            value=_convert_nan(band.value[i]),
            interval=(float(band.low[i]), float(band.high[i])) if band.low[i] > 0 else None,
            trials=int(shown.trials[i]),
            runs=int(shown.run_count[i]),
            suspect=int(shown.suspect[i]),
            excluded=int(shown.invalid[i]),
            validity_issues=issues.get(commit, ()),
            epoch=int(shown.epoch[i]),
            configuration=int(shown.configuration[i]),
            others=int(others[i]),
            outlier=commit in shifts.outliers,
            shift=by_commit.get(commit),
            baseline=baselines.get(commit),
            annotations=tuple(written.get(first + i, ())),
        )
        for i, commit in enumerate(shown.commit.tolist())
    )


def _convert_nan(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _find_previous(points: Points) -> np.ndarray:
    """Return for each point the index of the previous one with valid trials, or -1."""
    own = np.where(points.trials > 0, np.arange(len(points)), -1)
    return np.concatenate([[-1], np.maximum.accumulate(own)[:-1]]) if len(points) else own


def _load_validity_issues(series: Series, shown: Points) -> Mapping[int, tuple[ValidityIssue, ...]]:
    """Map commits to their validity issues; imported results have none."""
    doubtful = shown.commit[(shown.suspect > 0) | (shown.invalid > 0)].tolist()
    if not doubtful:
        return {}
    rows = Trial.objects.filter(
        case=series.case_id,
        host=series.host_id,
        variant__commit__in=doubtful,
        state=TrialState.MEASURED,
        validity__in=[Validity.SUSPECT, Validity.INVALID],
    ).values_list("variant__commit", "reasons")
    reasons: dict[int, list[Sequence[str]]] = defaultdict(list)
    for commit, each in rows:
        reasons[commit].append(each)
    return {commit: count_validity_issues(each) for commit, each in reasons.items()}


def _build_breaks(line: Line, first: int, last: int) -> tuple[HistoryBreak, ...]:
    return tuple(
        HistoryBreak(
            before=line_break.before - first,
            host=line_break.host,
            definition=line_break.definition,
            bridge=line_break.bridge,
        )
        for line_break in line.breaks
        if first <= line_break.before < last
    )


def _build_host_changes(line: Line, host: Host, first: int, last: int) -> tuple[HistoryChange, ...]:
    host_breaks = [
        line_break
        for line_break in line.breaks
        if line_break.host and first <= line_break.before < last
    ]
    changes: Sequence[HostChange] = list(load_host_changes(host)) if host_breaks else []
    return tuple(
        HistoryChange(before=line_break.before - first, at=each.at, changed=each.changed)
        for line_break in host_breaks
        for each in select_changes_between(
            changes, line.points, line_break.after, line_break.before
        )
    )


def select_changes_between(
    changes: Sequence[HostChange], points: Points, one: int, other: int
) -> Sequence[HostChange]:
    """Return the changes of a host, oldest first, between two points."""
    first, last = sorted((int(points.epoch[one]), int(points.epoch[other])))
    return changes[first:last]
