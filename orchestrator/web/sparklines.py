"""Sparklines in SVG: the values or changes of a history, and the CPU cores of the latest trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cli.pitwall.units import format_number
from orchestrator.histories.newest_points import CommitValue
from orchestrator.measurements.cpu_traces import CpuTrace, Line

WIDTH = 84
HEIGHT = 24
_EDGE = 3
CHANGE_WIDTH, CHANGE_HEIGHT, _CHANGE_EDGE = 64, 20, 2
#: The axis of changes covers at least this share around the median: noise must not look like a
#: change.
LEAST_REACH = 0.1
CPU_WIDTH, CPU_HEIGHT = 160.0, 32.0
#: The gap between two trials, so that they do not look like one.
CPU_GAP = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """`points` of a polyline within WIDTH × HEIGHT, from zero up; (x, y) is the last one."""

    points: str
    x: float
    y: float
    width: int = WIDTH
    height: int = HEIGHT


def build_sparkline(values: Sequence[float]) -> Sparkline | None:
    """Return a sparkline; None for fewer than two values.

    The baseline is zero, so that a steady history looks flat.
    """
    if len(values) < 2:
        return None
    top = max(values) or 1.0
    wide, high = WIDTH - 2 * _EDGE, HEIGHT - 2 * _EDGE
    spots = [
        (_EDGE + wide * place / (len(values) - 1), HEIGHT - _EDGE - high * max(0.0, value) / top)
        for place, value in enumerate(values)
    ]
    x, y = spots[-1]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return Sparkline(points=points, x=round(x, 1), y=round(y, 1))


def draw_change_sparkline(points: Sequence[CommitValue]) -> str:
    """Return the path of a line, interrupted between values that are not comparable.

    Its axis is cut: it reaches from the median as far as the values, at least LEAST_REACH of it.
    """
    if not points:
        return ""
    middle = median(each.value for each in points)
    reach = max([LEAST_REACH * abs(middle), *(abs(each.value - middle) for each in points)]) or 1.0
    step = (CHANGE_WIDTH - 2 * _CHANGE_EDGE) / max(1, len(points) - 1)
    half = CHANGE_HEIGHT / 2 - _CHANGE_EDGE
    parts = []
    for place, each in enumerate(points):
        begins = place == 0 or points[place - 1].kind != each.kind
        x = _CHANGE_EDGE + step * place
        y = CHANGE_HEIGHT / 2 - half * (each.value - middle) / reach
        parts.append(f"{'M' if begins else 'L'}{x:.0f} {y:.0f}")
        if begins:
            # A line of no length is a dot: a value may be alone.
            parts.append("h0")
    return "".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSparkline:
    """`server` and `tool`: one list of points for each trial. `text` describes them in words."""

    width: float
    height: float
    server: tuple[str, ...]
    tool: tuple[str, ...]
    cores: int
    trials: int
    text: str


def build_cpu_sparkline(traces: Sequence[CpuTrace]) -> CpuSparkline | None:
    """Return the sparkline; None if no trial has CPU samples."""
    every = [value for trace in traces for _, value in (*trace.server, *trace.tool)]
    if not every:
        return None
    cores = max(1, math.ceil(max(every)))
    seconds = sum(trace.seconds for trace in traces)
    per_s = (CPU_WIDTH - CPU_GAP * (len(traces) - 1)) / seconds
    server, tool, left = [], [], 0.0
    for trace in traces:
        server.append(_build_cpu_points(trace.server, left, per_s, cores))
        tool.append(_build_cpu_points(trace.tool, left, per_s, cores))
        left += trace.seconds * per_s + CPU_GAP
    return CpuSparkline(
        width=CPU_WIDTH,
        height=CPU_HEIGHT,
        server=tuple(filter(None, server)),
        tool=tuple(filter(None, tool)),
        cores=cores,
        trials=len(traces),
        text=_format_cpu(traces[-1]),
    )


def _build_cpu_points(line: Line, left: float, per_s: float, cores: int) -> str:
    """Return the points of a step line: one step for each interval between two samples."""
    points, since = [], left
    for second, value in line:
        until, y = left + second * per_s, CPU_HEIGHT - 1 - (CPU_HEIGHT - 2) * value / cores
        points += [f"{since:.1f},{y:.1f}", f"{until:.1f},{y:.1f}"]
        since = until
    return " ".join(points)


def _format_cpu(newest: CpuTrace) -> str:
    lines = [("server", newest.server), ("load tool", newest.tool)]
    return ", ".join(f"{name} {_format_cores(line)}" for name, line in lines if line)


def _format_cores(line: Line) -> str:
    return f"{format_number(_compute_mean(line))} cores"


def _compute_mean(line: Line) -> float:
    """Return the mean, weighted by the length of the intervals."""
    spent, since = 0.0, 0.0
    for second, value in line:
        spent += value * (second - since)
        since = second
    return spent / since if since else 0.0
