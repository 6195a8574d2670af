"""Charts of lines: over a numeric axis in one or several panels, and latency curves. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.reports.bar_drawing import NARROW, draw_legend, name_colour
from orchestrator.reports.chart_model import Line, LineChart, Mark, Panel
from orchestrator.reports.svg import (
    SMALL,
    choose_log_ticks,
    choose_ticks,
    element,
    format_log_tick,
    format_tick,
    group,
    measure,
    path,
    shorten,
    text,
)

#: Heights in pixels: one panel alone, each of several, its title, its axis.
_ALONE, _PANEL, _TITLE, _AXIS = 300, 180, 30, 26
#: The room for the name of an axis, and between panels.
_NAME, _BETWEEN = 22, 24
#: Numbers over this many powers of ten have a logarithmic horizontal axis.
_LOG_POWERS = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Values between the ends of `ticks` as pixels from `start` to `end`."""

    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    start: float
    end: float
    log: bool = False
    low: float
    high: float

    def place(self, value: float) -> float:
        inside = min(self.high, max(self.low, value))
        first, last, at = (self._convert(each) for each in (self.low, self.high, inside))
        return self.start + (at - first) / (last - first) * (self.end - self.start)

    def _convert(self, value: float) -> float:
        return math.log10(value) if self.log else value


def draw_lines(chart: LineChart, width: int) -> tuple[str, float]:
    """Return the markup and its height."""
    lines = {line.title: line for panel in chart.panels for line in panel.lines}
    entries = [(line.title, line.number, _name_kind(line)) for line in lines.values()]
    legend, top = draw_legend(entries, width)
    name = text(shorten(chart.y_title, width, SMALL), 0, top + 8, class_="small muted")
    top += _NAME
    columns = _count_columns(len(chart.panels), width)
    wide = (width - _BETWEEN * (columns - 1)) / columns
    height = _ALONE if len(chart.panels) == 1 else _PANEL
    full = height + _AXIS + (_TITLE if any(panel.title for panel in chart.panels) else 0)
    parts = [legend, name]
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, columns)
        inner = _draw_panel(chart, panel, wide, height)
        x, y = column * (wide + _BETWEEN), top + row * (full + 12)
        parts.append(group([inner], transform=f"translate({x:.1f} {y:.1f})"))
    bottom = top + math.ceil(len(chart.panels) / columns) * (full + 12)
    title = shorten(chart.x_title, width, SMALL)
    parts.append(text(title, width / 2, bottom + 4, class_="small muted", text_anchor="middle"))
    return "".join(parts), bottom + 16


def _count_columns(panels: int, width: int) -> int:
    if width < NARROW or panels == 1:
        return 1
    return 2 if panels in (2, 4) else 3


def _draw_panel(chart: LineChart, panel: Panel, width: float, height: float) -> str:
    top = _TITLE if panel.title else 6.0
    marks = [mark for line in panel.lines for mark in _list_marks(line)]
    y = _build_y_scale(marks, chart.log, top, top + height)
    left = 8 + max((measure(label, SMALL) for label in y.labels), default=0)
    x = _build_x_scale(chart, panel, left, width)
    parts = [text(shorten(panel.title, width), 0, 8, class_="strong")]
    parts += _draw_axes(x, y, left, width, top + height)
    # Bands first, so that no line is below the band of another one.
    parts += [_draw_band(line, x, y) for line in panel.lines]
    parts += [_draw_line(line, x, y, left, width) for line in panel.lines]
    return "".join(parts)


def _list_marks(line: Line) -> list[Mark]:
    return [*(mark for _, mark in line.points), *([line.level] if line.level else [])]


def _build_y_scale(marks: Sequence[Mark], log: bool, top: float, bottom: float) -> _Scale:
    values = [mark.value for mark in marks]
    log = log and min(values) > 0
    low, high = min(values), max(values)
    reach = 1.5 * max(abs(high), abs(low))
    highs = [min(mark.high, high + reach) for mark in marks if mark.high is not None]
    if log:
        ticks = choose_log_ticks(low, max([high, *highs]))
        labels = [format_log_tick(tick) for tick in ticks]
    else:
        ticks = choose_ticks(min(0.0, low), max([0.0, high, *highs]), count=4)
        labels = [format_tick(tick, ticks) for tick in ticks]
    return _Scale(
        ticks=tuple(ticks),
        labels=tuple(labels),
        start=bottom,
        end=top,
        log=log,
        low=ticks[0],
        high=ticks[-1],
    )


def _build_x_scale(chart: LineChart, panel: Panel, left: float, right: float) -> _Scale:
    places = sorted({x for line in panel.lines for x, _ in line.points})
    if not places:
        places = sorted({x for each in chart.panels for line in each.lines for x, _ in line.points})
    low, high = places[0], places[-1]
    if chart.ticks:
        known = [(x, label) for x, label in chart.ticks if low <= x <= high]
        log = False
    else:
        log = low > 0 and math.log10(high / low) > _LOG_POWERS
        known = [(x, format_log_tick(x) if x > 0 else format_tick(x, places)) for x in places]
    if low == high:
        low, high, log = low - 1, high + 1, False
    end = right - max(8.0, measure(known[-1][1], SMALL) / 2 + 1)
    scale = _Scale(ticks=(), labels=(), start=left + 8, end=end, log=log, low=low, high=high)
    kept = list(_keep_apart(known, scale))
    return _Scale(
        ticks=tuple(x for x, _ in kept),
        labels=tuple(label for _, label in kept),
        start=scale.start,
        end=scale.end,
        log=log,
        low=low,
        high=high,
    )


def _keep_apart(ticks: Sequence[tuple[float, str]], scale: _Scale) -> Iterator[tuple[float, str]]:
    """Yield the ticks whose labels do not touch the one before."""
    free = -math.inf
    for x, label in ticks:
        half = measure(label, SMALL) / 2
        if scale.place(x) - half >= free:
            free = scale.place(x) + half + 6
            yield x, label


def _draw_axes(x: _Scale, y: _Scale, left: float, width: float, bottom: float) -> Iterator[str]:
    for tick, label in zip(y.ticks, y.labels, strict=True):
        at = y.place(tick)
        kind = "zero" if tick == 0 else "grid"
        yield element("path", d=path([(left, at), (width, at)]), class_=kind)
        yield text(label, left - 6, at, class_="small muted", text_anchor="end")
    for tick, label in zip(x.ticks, x.labels, strict=True):
        at = x.place(tick)
        yield element("path", d=path([(at, bottom), (at, bottom + 4)]), class_="zero")
        yield text(label, at, bottom + 14, class_="small muted", text_anchor="middle")


def _draw_band(line: Line, x: _Scale, y: _Scale) -> str:
    known = [(at, mark.low, mark.high) for at, mark in line.points if mark.low is not None]
    if len(known) < 2:
        return ""
    upper = [(x.place(at), y.place(high or 0.0)) for at, _, high in known]
    lower = [(x.place(at), y.place(low)) for at, low, _ in reversed(known)]
    return element("path", d=path([*upper, *lower], closed=True), class_=f"band {_name(line)}")


def _draw_line(line: Line, x: _Scale, y: _Scale, left: float, width: float) -> str:
    if line.level is not None:
        at = y.place(line.level.value)
        level = element("path", d=path([(left, at), (width, at)]), class_=f"level {_name(line)}")
        return group([level], f"{line.title}: {line.level.shown}")
    corners = [(x.place(at), y.place(mark.value)) for at, mark in line.points]
    kind = "line dashed" if line.published else "line"
    drawn = [element("path", d=path(corners), class_=f"{kind} {_name(line)}")]
    dot = "hollow" if line.published else "solid"
    for (px, py), (_, mark) in zip(corners, line.points, strict=True):
        circle = element("circle", cx=px, cy=py, r=3.5, class_=f"{dot} {_name(line)}")
        drawn.append(group([circle], mark.hint))
    return "".join(drawn)


def _name_kind(line: Line) -> str:
    if line.level is not None:
        return "level"
    return "dashed" if line.published else "line"


def _name(line: Line) -> str:
    return name_colour(line.number)
