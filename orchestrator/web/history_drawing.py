"""A history as a picture that the server draws: for alerts, embedded charts, and pages without
scripts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.pitwall.units import format_value
from orchestrator.histories.reports import History, HistoryPoint
from orchestrator.results.models import ChangePoint

WIDTH, HEIGHT = 640, 220
#: Room at both ends of the line, and above and below the bands as a share of their height.
_MARGIN, _ROOM = 8, 0.15

#: The index of a point among those that are drawn, with the point.
_Placed = tuple[int, HistoryPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnChange:
    """A change between two points at `x`: the lines (x, width, y) of the level before and after."""

    x: float
    levels: Sequence[tuple[float, float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture of `width` by `height`: lines, the bands of their intervals, dots.

    Lines end where values are not comparable. `top` and `bottom` are the ends of the vertical axis;
    a `cut` one does not begin at zero. `named` are the first, the middle and the last point.
    """

    history: History
    change: DrawnChange | None
    lines: Sequence[str]
    bands: Sequence[str]
    dots: Sequence[tuple[float, float, HistoryPoint]]
    top: str
    bottom: str
    cut: bool
    named: Sequence[HistoryPoint]
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Positions of the picture for `count` points with values from `low` to `high`."""

    low: float
    high: float
    count: int

    def x(self, place: float) -> float:
        return round(_MARGIN + (WIDTH - 2 * _MARGIN) * place / (self.count - 1), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT * (self.high - value) / (self.high - self.low), 1)

    def corner(self, place: int, value: float) -> str:
        return f"{self.x(place)},{self.y(value)}"


def draw_history(history: History, change: ChangePoint | None = None) -> Drawing | None:
    """Return the drawing, with the levels before and after `change`.

    None if fewer than two points have a value, or if the change does not separate two of them.
    """
    parts = list(_iterate_parts(history))
    points = [point for part in parts for _, point in part]
    at = 0 if change is None else _find_place(points, change)
    if len(points) < 2 or (change is not None and not at):
        return None
    scale = _choose_scale(points, change)
    return Drawing(
        history=history,
        change=None if change is None else _draw_change(change, at, scale),
        lines=[
            " ".join(scale.corner(place, point.value or 0.0) for place, point in part)
            for part in parts
        ],
        bands=[_draw_band(part, scale) for part in parts],
        dots=[
            (scale.x(place), scale.y(point.value or 0.0), point)
            for part in parts
            for place, point in part
        ],
        top=format_value(scale.high, history.unit),
        bottom=format_value(scale.low, history.unit),
        cut=scale.low > 0,
        named=[points[0], *points[len(points) // 2 : -1][:1], points[-1]],
    )


def _find_place(points: Sequence[HistoryPoint], change: ChangePoint) -> int:
    """Return the index of the first point after the change, or 0."""
    places = {point.commit.pk: place for place, point in enumerate(points)}
    return places.get(change.commit_id, 0)


def _iterate_parts(history: History) -> Iterator[list[_Placed]]:
    """Yield the points with a value, in parts between breaks that no commit bridges."""
    broken = {each.before for each in history.breaks if each.bridge is None}
    part: list[_Placed] = []
    place = 0
    for index, point in enumerate(history.points):
        if index in broken and part:
            yield part
            part = []
        if point.value is not None:
            part.append((place, point))
            place += 1
    if part:
        yield part


def _choose_scale(points: Sequence[HistoryPoint], change: ChangePoint | None) -> _Scale:
    values = [end for point in points for end in _get_bounds(point)]
    values += [change.level_before, change.level_after] if change else []
    low, high = min(values), max(values)
    room = _ROOM * (high - low) or 0.1 * abs(high) or 1.0
    # Values that are never negative have no axis below zero.
    least = low - room if low < 0 else max(0.0, low - room)
    return _Scale(low=least, high=high + room, count=len(points))


def _get_bounds(point: HistoryPoint) -> tuple[float, float]:
    value = point.value or 0.0
    return point.interval or (value, value)


def _draw_band(part: Sequence[_Placed], scale: _Scale) -> str:
    upper = [scale.corner(place, _get_bounds(point)[1]) for place, point in part]
    lower = [scale.corner(place, _get_bounds(point)[0]) for place, point in part]
    return " ".join([*upper, *reversed(lower)])


def _draw_change(change: ChangePoint, at: int, scale: _Scale) -> DrawnChange:
    first, x, last = scale.x(0), scale.x(at - 0.5), scale.x(scale.count - 1)
    before, after = scale.y(change.level_before), scale.y(change.level_after)
    return DrawnChange(
        x=x, levels=[(first, round(x - first, 1), before), (x, round(last - x, 1), after)]
    )
