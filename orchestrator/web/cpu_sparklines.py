"""A small line of CPU cores over the newest trials of a host, as the points of an SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.measurements.cpu_traces import CpuTrace, Line

WIDTH, HEIGHT = 160.0, 32.0
#: Between two trials, so that they do not look like one.
GAP = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """`server` and `tool`: one list of points for each trial. `text` tells the same in words."""

    width: float
    height: float
    server: tuple[str, ...]
    tool: tuple[str, ...]
    cores: int
    trials: int
    text: str


def sparkline(traces: Sequence[CpuTrace]) -> Sparkline | None:
    """None where no trial told of CPU."""
    every = [value for trace in traces for _, value in (*trace.server, *trace.tool)]
    if not every:
        return None
    cores = max(1, math.ceil(max(every)))
    seconds = sum(trace.seconds for trace in traces)
    per_s = (WIDTH - GAP * (len(traces) - 1)) / seconds
    server, tool, left = [], [], 0.0
    for trace in traces:
        server.append(_points(trace.server, left, per_s, cores))
        tool.append(_points(trace.tool, left, per_s, cores))
        left += trace.seconds * per_s + GAP
    return Sparkline(
        width=WIDTH,
        height=HEIGHT,
        server=tuple(filter(None, server)),
        tool=tuple(filter(None, tool)),
        cores=cores,
        trials=len(traces),
        text=_in_words(traces[-1]),
    )


def _points(line: Line, left: float, per_s: float, cores: int) -> str:
    """A step for each stretch between two samples."""
    points, since = [], left
    for second, value in line:
        until, y = left + second * per_s, HEIGHT - 1 - (HEIGHT - 2) * value / cores
        points += [f"{since:.1f},{y:.1f}", f"{until:.1f},{y:.1f}"]
        since = until
    return " ".join(points)


def _in_words(newest: CpuTrace) -> str:
    said = [("server", newest.server), ("load tool", newest.tool)]
    return ", ".join(f"{name} {_cores(line)}" for name, line in said if line)


def _cores(line: Line) -> str:
    return f"{_mean(line):.2f} cores"


def _mean(line: Line) -> float:
    """Weighed by how long each stretch was."""
    spent, since = 0.0, 0.0
    for second, value in line:
        spent += value * (second - since)
        since = second
    return spent / since if since else 0.0
