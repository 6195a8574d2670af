"""A comparison as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .judging import Judgement
from .units import (
    UNKNOWN,
    format_change,
    format_interval,
    format_items,
    format_percent,
    format_value,
)

HEADS = (
    "case",
    "host",
    "metric",
    "baseline",
    "contender",
    "change",
    "likely",
    "95 % interval",
    "verdict",
)
#: Columns of numbers.
RIGHT = frozenset({"baseline", "contender", "change", "likely", "95 % interval", "value"})


def render_comparison(report: Any) -> str:
    """Return the summary, the limitations, and a line for each primary metric."""
    parts = [report["summary"], *(f"Note: {note}" for note in report.get("notes", ()))]
    parts += [
        f"Not comparable: {each['aspect']}: {each['baseline']} against {each['contender']}: "
        f"{each['reason']}"
        for each in report.get("mismatches", ())
    ]
    parts += _format_validity_issues(report["cases"])
    parts += _format_saturated(report["cases"])
    rows = [row for case in report["cases"] for row in _build_rows(case)]
    if rows:
        parts.append("\n" + render_table(HEADS, rows))
    return "\n".join(parts)


def render_judgement(judged: Judgement, min_change: Any) -> list[str]:
    """Return the reasons for the result of the build."""
    lines = [f"FAILED: {each}" for each in judged.because]
    lines += [
        f"not counted, may be less than {format_percent(min_change)}: {each}"
        for each in judged.spared
    ]
    return lines + [f"no result: {each}" for each in judged.unknown]


def render_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with columns as wide as needed; columns without values are left out."""
    every = [list(heads), *(list(row) for row in rows)]
    kept = [i for i in range(len(heads)) if any(row[i] not in ("", UNKNOWN) for row in every[1:])]
    widths = [max(len(row[i]) for row in every) for i in kept]
    lines = []
    for row in every:
        cells = [
            row[i].rjust(width) if heads[i] in RIGHT else row[i].ljust(width)
            for i, width in zip(kept, widths)
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _build_rows(case: Any) -> list[list[str]]:
    label = case["case"]["label"]
    primary = [metric for metric in case["metrics"] if metric["primary"]]
    if not primary:
        return [[label, case["host"], "", "", "", "", "", "", case["verdict"]]]
    return [
        [
            label,
            case["host"],
            metric["title"],
            format_value(metric["baseline"], metric["unit"]),
            format_value(metric["contender"], metric["unit"]),
            format_change(metric["change"]),
            format_change(metric["likely_change"]),
            format_interval(metric["interval"]),
            metric["verdict"],
        ]
        for metric in primary
    ]


def _format_saturated(cases: Iterable[Any]) -> list[str]:
    """Return the changes of primary metrics that include blocks with a saturated trial."""
    lines = []
    for case in cases:
        for metric in case["metrics"]:
            full = metric.get("with_saturated")
            if metric["primary"] and full:
                bound = {"at_least": "at least ", "at_most": "at most "}.get(full["bound"], "")
                lines.append(
                    f"With {format_items(full['blocks'], 'saturated block')}: "
                    f"{case['case']['label']} {metric['title']} {bound}"
                    f"{format_change(full['change'])} ({format_interval(full['interval'])})"
                )
    return lines


def _format_validity_issues(cases: Iterable[Any]) -> list[str]:
    """Return why trials are suspect or invalid, with the number of such trials over all cases."""
    counted: dict[str, int] = {}
    for case in cases:
        for issue in case.get("validity_issues", ()):
            counted[issue["title"]] = counted.get(issue["title"], 0) + issue["trials"]
    return [
        f"Validity issue: {title} ({format_items(trials, 'trial')})"
        for title, trials in counted.items()
    ]
