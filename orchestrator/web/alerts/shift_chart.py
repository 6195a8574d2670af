"""The history around a change point as a picture that the server draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.pitwall.units import format_value
from orchestrator.histories.histories import Part, load_series_history
from orchestrator.histories.reports import History, HistoryPoint
from orchestrator.results.models import ChangePoint

#: So many points at most, of which half are before the change.
POINTS = 60
WIDTH, HEIGHT, _SIDE = 720, 200, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point of the picture: its place, the ends of its interval, and its text."""

    x: float
    y: float
    top: float
    bottom: float
    is_after: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftChart:
    """`levels` are the lines (x, width, y) of the level before and after; `shift_x` is between.

    `top` and `bottom` are the values at the ends of the vertical axis, which is `cut` above zero.
    """

    history: History
    dots: Sequence[Dot]
    levels: Sequence[tuple[float, float, float]]
    shift_x: float
    top: str
    bottom: str
    cut: bool

    @property
    def view_box(self) -> str:
        return f"0 0 {WIDTH} {HEIGHT}"

    @property
    def first(self) -> HistoryPoint:
        return self.history.points[0]

    @property
    def last(self) -> HistoryPoint:
        return self.history.points[-1]


class _Scale:
    """Maps places and values to the picture, with room above and below all intervals."""

    def __init__(self, count: int, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        room = 0.1 * (high - low) or 0.1 * abs(high) or 1.0
        self.low, self.high, self.count = low - room, high + room, count

    def x(self, place: float) -> float:
        return round(_SIDE + (WIDTH - 2 * _SIDE) * place / max(1, self.count - 1), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT * (self.high - value) / (self.high - self.low), 1)


def load_shift_chart(row: ChangePoint) -> ShiftChart | None:
    """Return the chart; None if the points of both levels are not in the history any more."""
    part = Part(limit=POINTS, around=row.commit_id)
    history = load_series_history(row.series, part=part)
    places = {point.commit.pk: place for place, point in enumerate(history.points)}
    at = places.get(row.commit_id, 0)
    return _draw(row, history, at) if at else None


def _draw(row: ChangePoint, history: History, at: int) -> ShiftChart:
    points = history.points
    levels = (row.level_before, row.level_after)
    bounds = [end for point in points for end in _get_bounds(point)]
    scale = _Scale(len(points), [*bounds, *levels])
    shift_x, last_x = scale.x(at - 0.5), scale.x(len(points) - 1)
    return ShiftChart(
        history=history,
        dots=[
            _build_dot(point, place, scale, unit=history.unit, is_after=place >= at)
            for place, point in enumerate(points)
        ],
        levels=[
            (_SIDE, shift_x - _SIDE, scale.y(levels[0])),
            (shift_x, last_x - shift_x, scale.y(levels[1])),
        ],
        shift_x=shift_x,
        top=format_value(scale.high, history.unit),
        bottom=format_value(scale.low, history.unit),
        cut=scale.low > 0,
    )


def _build_dot(point: HistoryPoint, place: int, scale: _Scale, *, unit: str, is_after: bool) -> Dot:
    low, high = _get_bounds(point)
    value = point.value or 0.0
    commit = point.commit
    return Dot(
        x=scale.x(place),
        y=scale.y(value),
        top=scale.y(high),
        bottom=scale.y(low),
        is_after=is_after,
        text=f"{commit.subject} ({commit.short_sha}): {format_value(value, unit)}",
    )


def _get_bounds(point: HistoryPoint) -> tuple[float, float]:
    value = point.value or 0.0
    return point.interval or (value, value)
