"""Charts with a line for each row: bars with intervals, and ranks with intervals. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.reports.chart_model import BarChart, Mark, RankChart, RankRow
from orchestrator.reports.svg import (
    SMALL,
    choose_ticks,
    element,
    format_tick,
    group,
    measure,
    path,
    shorten,
    text,
)

#: Below this width, the label of a row is above its bars instead of next to them.
NARROW = 560
#: Heights in pixels: a bar with its gap, the room between rows, a label, the axis.
_BAR, _GAP, _LABEL, _AXIS = 19, 10, 20, 46
_RANK = 26
#: An interval that is this many times longer than the longest bar is cut.
_MOST_INTERVAL = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A horizontal axis from `low` to `high` between the pixels `left` and `right`."""

    low: float
    high: float
    left: float
    right: float

    def place(self, value: float) -> float:
        inside = min(self.high, max(self.low, value))
        share = (inside - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)


def draw_bars(chart: BarChart, width: int) -> tuple[str, float]:
    """Return the markup and its height."""
    legend, top = draw_legend(
        [(s.title, s.number, "hollow" if s.published else "solid") for s in chart.series], width
    )
    marks = [mark for each in chart.series for mark in each.marks if isinstance(mark, Mark)]
    left, above = _choose_label_room(chart.labels, width)
    values = max((measure(mark.shown, SMALL) for mark in marks), default=0)
    ticks = choose_ticks(*_find_range(marks), count=5 if width > NARROW else 4)
    left = max(left, measure(format_tick(ticks[0], ticks), SMALL) / 2)
    right = width - max(16.0, min(values + 14, width / 4))
    axis = Axis(low=ticks[0], high=ticks[-1], left=left, right=right)
    band = len(chart.series) * _BAR + _GAP + above
    bottom = top + len(chart.labels) * band
    parts = [legend, *_draw_grid(axis, ticks, top, bottom, chart.axis)]
    for number, label in enumerate(chart.labels):
        y = top + number * band
        parts.append(_draw_label(label, left, y + _GAP / 2, band - _GAP, above))
        for place, series in enumerate(chart.series):
            middle = y + _GAP / 2 + above + (place + 0.5) * _BAR
            mark = series.marks[number]
            if isinstance(mark, str):
                parts.append(text(mark, axis.place(0) + 7, middle, class_="small muted"))
            else:
                parts.append(_draw_bar(axis, mark, middle, series.number))
    return "".join(parts), bottom + _AXIS


def draw_ranks(chart: RankChart, width: int) -> tuple[str, float]:
    """Return the markup and its height."""
    left, above = _choose_label_room([row.label for row in chart.rows], width)
    right = width - 16 - min(width / 4, max(measure(row.shown, SMALL) for row in chart.rows))
    worst = max(row.worst for row in chart.rows)
    axis = Axis(low=0.5, high=worst + 0.5, left=left, right=right)
    stride = max(1, round(worst / 12))
    ticks = [float(rank) for rank in range(1, worst + 1) if rank == 1 or rank % stride == 0]
    band = _RANK + above
    bottom = len(chart.rows) * band
    parts = list(_draw_grid(axis, ticks, 0, bottom, chart.axis))
    for number, row in enumerate(chart.rows):
        y = number * band
        if row.first_of_group:
            line = path([(0, y), (width, y)])
            parts.append(element("path", d=line, class_="divider"))
        parts.append(_draw_label(row.label, left, y, band, above))
        parts.append(_draw_rank(axis, row, y + above + (band - above) / 2))
        middle = y + above + (band - above) / 2
        parts.append(text(row.shown, right + 10, middle, class_="small muted"))
    return "".join(parts), bottom + _AXIS


def draw_legend(entries: Sequence[tuple[str, int, str]], width: int) -> tuple[str, float]:
    """Return a legend and its height; nothing for one entry.

    An entry is a title, the number of its colour, and the class of its sample: solid or hollow for
    bars; line, dashed or level for lines.
    """
    if len(entries) < 2:
        return "", 0
    parts: list[str] = []
    x, y = 0.0, 10.0
    for title, number, kind in entries:
        shown = shorten(title, width - 40)
        wide = 24 + measure(shown) + 16
        if x and x + wide > width:
            x, y = 0.0, y + 22
        parts.append(_draw_sample(kind, number, x, y) + text(shown, x + 24, y))
        x += wide
    return "".join(parts), y + 20


def _draw_sample(kind: str, number: int, x: float, y: float) -> str:
    if kind in ("solid", "hollow"):
        names = f"{kind} {name_colour(number)}"
        return element("rect", x=x + 2, y=y - 6, width=14, height=12, rx=2, class_=names)
    names = f"{'line dashed' if kind == 'dashed' else kind} {name_colour(number)}"
    return element("path", d=path([(x, y), (x + 18, y)]), class_=names)


def name_colour(number: int) -> str:
    """Return the classes of a series: its colour, and dashes if the colour is used before."""
    return f"s{number % 6 + 1}{' again' if number >= 6 else ''}"


def _find_range(marks: Sequence[Mark]) -> tuple[float, float]:
    """Return the ends of the axis: zero, the values, and intervals that are not far longer."""
    low, high = min(0.0, *(m.value for m in marks)), max(0.0, *(m.value for m in marks))
    reach = _MOST_INTERVAL * max(high, -low)
    ends = [(mark.low or 0.0, mark.high or 0.0) for mark in marks if mark.low is not None]
    least = max(min((end for end, _ in ends), default=0.0), -reach)
    most = min(max((end for _, end in ends), default=0.0), reach)
    return min(low, least), max(high, most)


def _choose_label_room(labels: Sequence[str], width: int) -> tuple[float, float]:
    """Return the width of labels next to the bars, and the height of labels above them."""
    if width < NARROW:
        return 6.0, float(_LABEL)
    return min(width * 0.4, max(map(measure, labels)) + 4) + 10, 0.0


def _draw_label(label: str, left: float, y: float, height: float, above: float) -> str:
    if above:
        return text(shorten(label, 340), 0, y + above / 2)
    return text(shorten(label, left - 10), left - 10, y + height / 2, text_anchor="end")


def _draw_grid(
    axis: Axis, ticks: Sequence[float], top: float, bottom: float, title: str
) -> Iterator[str]:
    for tick in ticks:
        x = axis.place(tick)
        kind = "zero" if tick == 0 else "grid"
        yield element("path", d=path([(x, top), (x, bottom)]), class_=kind)
        label = format_tick(tick, ticks)
        yield text(label, x, bottom + 13, class_="small muted", text_anchor="middle")
    middle = (axis.left + axis.right) / 2
    shown = shorten(title, axis.right - axis.left, SMALL)
    yield text(shown, middle, bottom + 34, class_="small muted", text_anchor="middle")


def _draw_bar(axis: Axis, mark: Mark, middle: float, number: int) -> str:
    start, end = sorted((axis.place(0), axis.place(mark.value)))
    kind = "hollow" if mark.published else "solid"
    bar = element(
        "rect",
        x=start,
        y=middle - 7,
        width=max(1.0, end - start),
        height=14,
        rx=1.5,
        class_=f"{kind} {name_colour(number)}",
    )
    after = end
    parts = [bar]
    if mark.low is not None and mark.high is not None:
        parts.append(draw_interval(axis, mark.low, mark.high, middle))
        after = max(after, axis.place(mark.high))
    parts.append(text(mark.shown, after + 7, middle, class_="small"))
    return group(parts, mark.hint)


def draw_interval(axis: Axis, low: float, high: float, middle: float) -> str:
    """Return a whisker. An end beyond the axis has no cap."""
    first, last = axis.place(low), axis.place(high)
    lines = path([(first, middle), (last, middle)])
    for end, x in ((low, first), (high, last)):
        if axis.low <= end <= axis.high:
            lines += path([(x, middle - 4), (x, middle + 4)])
    return element("path", d=lines, class_="whisker")


def _draw_rank(axis: Axis, row: RankRow, middle: float) -> str:
    first, last = axis.place(row.best - 0.3), axis.place(row.worst + 0.3)
    band = element(
        "rect", x=first, y=middle - 6, width=last - first, height=12, rx=6, class_="range s1"
    )
    dot = element("circle", cx=axis.place(row.place), cy=middle, r=4.5, class_="solid s1")
    ranks = f"{row.best}" if row.best == row.worst else f"{row.best} to {row.worst}"
    return group([band, dot], f"{row.label}: rank {ranks}, {row.shown}")
