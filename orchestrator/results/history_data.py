"""The data of a chart: one series along a branch as compact JSON, from a handful of queries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.fleet.selectors import changes_of
from orchestrator.loadtools.metrics import metric_for
from orchestrator.results.commit_names import CommitName, commit_names
from orchestrator.results.histories import changes_between
from orchestrator.results.history_branches import points_on
from orchestrator.results.history_changes import Shifts, shifts_of
from orchestrator.results.history_columns import (
    as_object,
    columns,
    compact,
    shapes_of,
    steps,
    whole,
)
from orchestrator.results.history_lines import Line, line_of
from orchestrator.results.models import Series


def history_data(series: Series, branch: str = "") -> str:
    """JSON of a series from `series_for` along a branch; docs/history.md says what is in it."""
    project = series.benchmark.project
    line = line_of(points_on(series.pk or 0, project, branch))
    names = commit_names(project.pk, project.fetched_at, line.points.commit.tolist())
    shapes = shapes_of(line)
    return as_object(
        {
            "series": compact(_about(series, branch)),
            "points": as_object(
                {
                    "commit": compact([name.short for name in names]),
                    "place": steps(line.points.place),
                    **columns(line.points, shapes),
                }
            ),
            "others": as_object({"of": whole(line.owner), **columns(line.others, shapes)}),
            **_marked(series, line, names),
        }
    )


def _about(series: Series, branch: str) -> dict[str, Any]:
    info = metric_for(series.metric.key)
    return {
        "id": series.pk,
        "benchmark": series.benchmark.slug,
        "project": series.benchmark.project.slug,
        "case": series.case.key,
        "label": series.case.label,
        "host": series.host.name,
        "branch": branch or series.benchmark.project.default_branch,
        "metric": series.metric.key,
        "title": info.title if info else series.metric.key,
        "unit": info.unit if info else "",
        "better": info.better if info else "",
    }


def _marked(series: Series, line: Line, names: Sequence[CommitName]) -> dict[str, str]:
    shifts = shifts_of(series.pk or 0, series.case_id)
    places = {commit: index for index, commit in enumerate(line.points.commit.tolist())}
    begun = shifts.baseline
    return {
        "merges": compact([index for index, name in enumerate(names) if name.merge]),
        "side": compact([index for index, name in enumerate(names) if name.side]),
        "marks": compact(_marks(series, line)),
        "changes": compact(_changes(shifts, places)),
        "outliers": compact([places[each] for each in shifts.outliers if each in places]),
        "unstable": compact(shifts.unstable),
        "baseline": compact(places.get(begun[0]) if begun else None),
    }


def _marks(series: Series, line: Line) -> list[dict[str, Any]]:
    host_changes = list(changes_of(series.host)) if any(m.host for m in line.marks) else []
    found = []
    for mark in line.marks:
        changes = changes_between(host_changes, line.points, mark.after, mark.before)
        facts = dict.fromkeys(fact for each in changes for fact in each.changed)
        found.append(
            {
                "before": mark.before,
                "host": list(facts) if mark.host else None,
                "definition": mark.definition,
                "bridge": None if mark.bridge is None else round(mark.bridge, 5),
            }
        )
    return found


def _changes(shifts: Shifts, places: dict[int, int]) -> list[dict[str, Any]]:
    return [
        {
            "at": places[shift.commit],
            "id": str(shift.id),
            "kind": shift.kind,
            "state": shift.state,
            "change": _rounded(shift.change),
            "low": _rounded(shift.interval[0]),
            "high": _rounded(shift.interval[1]),
            "regressed": shift.regressed,
            "duel": None if shift.duel is None else _rounded(shift.duel),
        }
        for shift in sorted(shifts.points, key=lambda each: places.get(each.commit, -1))
        if shift.commit in places
    ]


def _rounded(change: float) -> float:
    return float(np.round(change, 5))
