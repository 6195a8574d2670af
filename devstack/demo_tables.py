"""A comparison as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import Any

from cli.pitwall.tables import render_table
from cli.pitwall.units import format_change, format_interval, format_value

HEADS = ("metric", "baseline", "contender", "change", "95 % interval", "verdict")


def render_comparison(comparison: dict[str, Any]) -> str:
    """Return the verdict, a table for each case, notes and the web address of the comparison."""
    contender, baseline = comparison["contender"], comparison["baseline"]
    lines = [
        f"{shorten(contender)}  {contender['subject']!r}",
        f"  against {shorten(baseline)}  {baseline['subject']!r}",
        f"  {comparison['verdict'].upper()}: {comparison['summary']}",
    ]
    for case in comparison["cases"]:
        table = render_table(HEADS, map(_build_row, case["metrics"]))
        lines += ["", f"  {case['case']['label'] or 'the only case'}", indent(table, "    ")]
        lines += [f"    {_describe_issue(issue)}" for issue in case["validity_issues"]]
    lines += [f"  note: {note}" for note in comparison.get("notes", [])]
    return "\n".join([*lines, "", f"  {comparison['web_url']}", ""])


def shorten(commit: dict[str, Any]) -> str:
    return str(commit["commit"])[:10]


def _describe_issue(issue: dict[str, Any]) -> str:
    trials = issue["trials"]
    return f"{trials} trial{'s' if trials != 1 else ''}: {issue['title']}"


def _build_row(metric: dict[str, Any]) -> Sequence[str]:
    unit = metric["unit"]
    return (
        ("* " if metric["primary"] else "  ") + metric["title"],
        format_value(metric["baseline"], unit),
        format_value(metric["contender"], unit),
        format_change(metric["change"]),
        format_interval(metric["interval"]),
        metric["verdict"],
    )
