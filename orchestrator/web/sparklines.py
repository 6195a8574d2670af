"""Small pictures of a history, drawn by the server. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 84
HEIGHT = 24
_EDGE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """`points` of a polyline within WIDTH × HEIGHT, from zero up; (x, y) is the last one."""

    points: str
    x: float
    y: float
    width: int = WIDTH
    height: int = HEIGHT


def sparkline(values: Sequence[float]) -> Sparkline | None:
    """None for fewer than two values: a point is no history. The baseline is zero, so that a
    steady history looks flat."""
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
