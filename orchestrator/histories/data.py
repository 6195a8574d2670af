"""The data of a chart: one series along a branch as compact JSON, from a handful of queries."""

from collections.abc import Sequence
from typing import Any

from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import HostChange
from orchestrator.histories.annotations import placed
from orchestrator.histories.branches import points_on
from orchestrator.histories.charted import Charted
from orchestrator.histories.columns import (
    as_object,
    columns,
    compact,
    hashes,
    list_configurations,
    steps,
    whole,
)
from orchestrator.histories.commit_names import DIGITS, CommitName, commit_names
from orchestrator.histories.histories import changes_between
from orchestrator.histories.lines import Line, Points, line_of
from orchestrator.histories.marked_changes import Shifts
from orchestrator.histories.points import points_along
from orchestrator.loadtools.metrics import metric_for


def history_data(series: Charted, branch: str = "") -> str:
    """Return the JSON of a series along a branch; docs/history.md describes it."""
    line = line_of(_points(series, branch))
    names = commit_names(series.project_id, series.fetched_at, line.points.commit.tolist())
    configurations = list_configurations(line)
    return as_object(
        {
            "series": compact(_about(series, branch)),
            "points": as_object(
                {
                    "commit": hashes([name.short for name in names]),
                    "position": steps(line.points.position),
                    **columns(line.points, configurations),
                }
            ),
            "others": as_object({"of": whole(line.owner), **columns(line.others, configurations)}),
            **_marked(series, line, names),
            "annotations": compact(_annotations(series, line, branch)),
        }
    )


def _points(series: Charted, branch: str) -> Points:
    if branch in ("", series.default_branch):
        return points_along(series.id)
    return points_on(series.id, Project.objects.get(pk=series.project_id), branch)


def _about(series: Charted, branch: str) -> dict[str, Any]:
    info = metric_for(series.metric)
    return {
        "id": series.id or None,
        "benchmark": series.benchmark,
        "project": series.project,
        "case": series.case,
        "label": series.label,
        "host": series.host,
        "branch": branch or series.default_branch,
        "metric": series.metric,
        "title": info.title if info else series.metric,
        "unit": info.unit if info else "",
        "better": info.better if info else "",
    }


def _marked(series: Charted, line: Line, names: Sequence[CommitName]) -> dict[str, str]:
    shifts = series.shifts
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


def _marks(series: Charted, line: Line) -> list[dict[str, Any]]:
    moved = any(mark.host for mark in line.marks)
    host_changes = (
        list(HostChange.objects.filter(host=series.host_id).order_by("at")) if moved else []
    )
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
            "confirmed_change": None
            if shift.confirmed_change is None
            else _rounded(shift.confirmed_change),
        }
        for shift in sorted(shifts.points, key=lambda each: places.get(each.commit, -1))
        if shift.commit in places
    ]


def _annotations(series: Charted, line: Line, branch: str) -> list[dict[str, Any]]:
    along_default = branch in ("", series.default_branch)
    found = placed(series.shifts.annotations, line.points, along_default=along_default)
    return [
        {
            "at": index,
            "id": str(each.id),
            "commit": each.sha[:DIGITS],
            "text": each.text,
            "author": each.author,
            "created_at": each.created_at.isoformat(timespec="seconds"),
            "of": each.of,
        }
        for index in sorted(found)
        for each in found[index]
    ]


def _rounded(change: float) -> float:
    return round(change, 5)
