"""The data of a chart: one series along a branch as compact JSON, from a handful of queries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import HostChange
from orchestrator.histories.annotations import place_annotations
from orchestrator.histories.branches import load_branch_points
from orchestrator.histories.commit_names import DIGITS, CommitName, load_commit_names
from orchestrator.histories.encoding import (
    as_object,
    encode_columns,
    encode_hashes,
    encode_json,
    encode_steps,
    encode_whole,
    list_configurations,
)
from orchestrator.histories.histories import select_changes_between
from orchestrator.histories.lines import Line, Points, build_line
from orchestrator.histories.marked_changes import Shifts
from orchestrator.histories.points import load_points
from orchestrator.histories.series_header import SeriesHeader
from orchestrator.loadtools.metrics import find_metric


def build_history_data(series: SeriesHeader, branch: str = "") -> str:
    """Return the JSON of a series along a branch; docs/history.md describes it."""
    line = build_line(_load_points(series, branch))
    names = load_commit_names(series.project_id, series.fetched_at, line.points.commit.tolist())
    configurations = list_configurations(line)
    return as_object(
        {
            "series": encode_json(_build_series_fields(series, branch)),
            "points": as_object(
                {
                    "commit": encode_hashes([name.short for name in names]),
                    "position": encode_steps(line.points.position),
                    "day": encode_steps(np.array([name.day for name in names], dtype=np.int64)),
                    **encode_columns(line.points, configurations),
                }
            ),
            "others": as_object(
                {"point": encode_whole(line.owner), **encode_columns(line.others, configurations)}
            ),
            **_encode_line_fields(series, line, names),
            "annotations": encode_json(_list_annotations(series, line, branch)),
        }
    )


def _load_points(series: SeriesHeader, branch: str) -> Points:
    if branch in ("", series.default_branch):
        return load_points(series.id)
    return load_branch_points(series.id, Project.objects.get(pk=series.project_id), branch)


def _build_series_fields(series: SeriesHeader, branch: str) -> dict[str, Any]:
    info = find_metric(series.metric)
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


def _encode_line_fields(
    series: SeriesHeader, line: Line, names: Sequence[CommitName]
) -> dict[str, str]:
    shifts = series.shifts
    places = {commit: index for index, commit in enumerate(line.points.commit.tolist())}
    begun = shifts.baseline
    return {
        "merges": encode_json([index for index, name in enumerate(names) if name.merge]),
        "side": encode_json([index for index, name in enumerate(names) if name.side]),
        "breaks": encode_json(_list_breaks(series, line)),
        "changes": encode_json(_list_changes(shifts, places)),
        "outliers": encode_json([places[each] for each in shifts.outliers if each in places]),
        "unstable": encode_json(shifts.unstable),
        "baseline": encode_json(places.get(begun[0]) if begun else None),
    }


def _list_breaks(series: SeriesHeader, line: Line) -> list[dict[str, Any]]:
    moved = any(line_break.host for line_break in line.breaks)
    host_changes = (
        list(HostChange.objects.filter(host=series.host_id).order_by("at")) if moved else []
    )
    breaks = []
    for line_break in line.breaks:
        changes = select_changes_between(
            host_changes, line.points, line_break.after, line_break.before
        )
        facts = dict.fromkeys(fact for each in changes for fact in each.changed)
        breaks.append(
            {
                "before": line_break.before,
                "host": list(facts) if line_break.host else None,
                "definition": line_break.definition,
                "bridge": None if line_break.bridge is None else round(line_break.bridge, 5),
            }
        )
    return breaks


def _list_changes(shifts: Shifts, places: dict[int, int]) -> list[dict[str, Any]]:
    return [
        {
            "at": places[shift.commit],
            "id": str(shift.id),
            "kind": shift.kind,
            "state": shift.state,
            "change": _round_change(shift.change),
            "low": _round_change(shift.interval[0]),
            "high": _round_change(shift.interval[1]),
            "regressed": shift.regressed,
            "confirmed_change": None
            if shift.confirmed_change is None
            else _round_change(shift.confirmed_change),
        }
        for shift in sorted(shifts.points, key=lambda each: places.get(each.commit, -1))
        if shift.commit in places
    ]


def _list_annotations(series: SeriesHeader, line: Line, branch: str) -> list[dict[str, Any]]:
    along_default = branch in ("", series.default_branch)
    placed = place_annotations(series.shifts.annotations, line.points, along_default=along_default)
    return [
        {
            "at": index,
            "id": str(each.id),
            "commit": each.sha[:DIGITS],
            "text": each.text,
            "author": each.author,
            "created_at": each.created_at.isoformat(timespec="seconds"),
            "scope": each.scope,
        }
        for index in sorted(placed)
        for each in placed[index]
    ]


def _round_change(change: float) -> float:
    return round(change, 5)
