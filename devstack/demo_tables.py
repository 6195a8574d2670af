"""A comparison as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HEADS = ("metric", "baseline", "contender", "change [95 % interval]", "verdict")
UNKNOWN = "-"


def render_comparison(comparison: dict[str, Any]) -> str:
    """Return the verdict, a table for each case, notes and the web address of the comparison."""
    contender, baseline = comparison["contender"], comparison["baseline"]
    lines = [
        f"{shorten(contender)}  {contender['subject']!r}",
        f"  against {shorten(baseline)}  {baseline['subject']!r}",
        f"  {comparison['verdict'].upper()}: {comparison['summary']}",
    ]
    for case in comparison["cases"]:
        lines += [
            "",
            f"  {case['case']['label'] or 'the only case'}",
            *render_table(build_rows(case)),
        ]
        lines += [
            f"    {issue['trials']} trials: {issue['title']}" for issue in case["validity_issues"]
        ]
    lines += [f"  note: {note}" for note in comparison.get("notes", [])]
    return "\n".join([*lines, "", f"  {comparison['web_url']}", ""])


def shorten(commit: dict[str, Any]) -> str:
    return str(commit["commit"])[:10]


def build_rows(case: dict[str, Any]) -> list[Sequence[str]]:
    return [HEADS, *(build_row(metric) for metric in case["metrics"])]


def build_row(metric: dict[str, Any]) -> Sequence[str]:
    unit = metric["unit"]
    return (
        ("* " if metric["primary"] else "  ") + metric["title"],
        format_quantity(metric["baseline"], unit),
        format_quantity(metric["contender"], unit),
        f"{format_percent(metric['change'])} {format_interval(metric['interval'])}",
        metric["verdict"],
    )


def format_quantity(value: float | None, unit: str) -> str:
    """Return a number with three or four significant digits and its unit: 12.34 ms, 23.74 MB."""
    if value is None:
        return UNKNOWN
    factor, prefix = scale(abs(value), unit)
    value *= factor
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f} {prefix}{'' if unit == '1' else unit}".rstrip()


def scale(size: float, unit: str) -> tuple[float, str]:
    """Return a factor, and the prefix that compensates for it."""
    what = unit.partition("/")[0]
    if what == "s" and 0 < size < 1:
        return (1e3, "m") if size >= 1e-3 else (1e6, "u")
    if what == "B" and size >= 1e4:
        return (1e-6, "M") if size >= 1e6 else (1e-3, "k")
    return 1.0, ""


def format_percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.1f} %"


def format_interval(ends: Sequence[float] | None) -> str:
    if ends is None:
        return "[unknown]"
    return f"[{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]"


def render_table(cells: list[Sequence[str]]) -> list[str]:
    """Return the rows with aligned columns: text to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADS))]
    return [
        "    "
        + "  ".join(
            text.ljust(width) if column in (0, 4) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
