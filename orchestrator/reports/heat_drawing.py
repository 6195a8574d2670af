"""Heat maps: rows by columns, with the value in each cell. Pure."""

import math
from collections.abc import Sequence

from orchestrator.reports.bar_drawing import NARROW
from orchestrator.reports.chart_model import HeatMap, Mark
from orchestrator.reports.svg import SMALL, element, group, measure, shorten, text, wrap

_CELL, _LABEL, _LEGEND = 26, 20, 58
#: The least and the most opacity of a cell; text on the darkest one has enough contrast.
_LEAST, _MOST = 0.05, 0.5
#: The steps of the legend, and their least and usual width.
_STEPS, _SLIM, _BROAD = 8, 6.0, 22.0


def draw_heat_map(chart: HeatMap, width: int) -> tuple[str, float]:
    """Return the markup and its height."""
    narrow = width < NARROW
    left = 0.0 if narrow else min(width * 0.4, max(map(measure, chart.labels)) + 14)
    wide = (width - left) / len(chart.columns)
    heads = [wrap(title, wide - 8, SMALL) for title in chart.columns]
    top = max(map(len, heads)) * 15 + 8.0
    shades = _Shades(chart)
    band = _CELL + (_LABEL if narrow else 0)
    parts = [
        text(line, left + (n + 0.5) * wide, 8 + 15 * number, class_="small", text_anchor="middle")
        for n, lines in enumerate(heads)
        for number, line in enumerate(lines)
    ]
    for number, (label, cells) in enumerate(zip(chart.labels, chart.cells, strict=True)):
        y = top + number * band
        if narrow:
            parts.append(text(shorten(label, width), 0, y + _LABEL / 2))
            y += _LABEL
        else:
            shown = shorten(label, left - 10)
            parts.append(text(shown, left - 10, y + _CELL / 2, text_anchor="end"))
        for place, cell in enumerate(cells):
            parts.append(_draw_cell(cell, left + place * wide, y, wide, shades))
    bottom = top + len(chart.labels) * band
    parts += _draw_legend(chart, shades, left, width - left, bottom)
    return "".join(parts), bottom + _LEGEND


class _Shades:
    """The opacity of each value, between those of the least and the largest one."""

    def __init__(self, chart: HeatMap) -> None:
        marks = [cell for row in chart.cells for cell in row if isinstance(cell, Mark)]
        self.least = min(marks, key=lambda mark: mark.value)
        self.most = max(marks, key=lambda mark: mark.value)
        self._log = chart.log and self.least.value > 0

    def choose(self, value: float) -> float:
        first, last, at = (
            math.log(each) if self._log else each
            for each in (self.least.value, self.most.value, value)
        )
        share = (at - first) / (last - first) if last > first else 0.0
        return _LEAST + share * (_MOST - _LEAST)


def _draw_cell(cell: Mark | str, x: float, y: float, width: float, shades: _Shades) -> str:
    middle, half = x + width / 2, y + _CELL / 2
    if isinstance(cell, str):
        shown = shorten(cell, width - 4, SMALL)
        return text(shown, middle, half, class_="small muted", text_anchor="middle")
    square = element(
        "rect",
        x=x + 1,
        y=y + 1,
        width=width - 2,
        height=_CELL - 2,
        rx=2,
        class_="heat",
        fill_opacity=f"{shades.choose(cell.value):.2f}",
    )
    fits = measure(cell.shown, SMALL) <= width - 4
    kind = "small published" if cell.published else "small"
    number = text(cell.shown, middle, half, class_=kind, text_anchor="middle") if fits else ""
    return group([square, number], cell.hint)


def _draw_legend(
    chart: HeatMap, shades: _Shades, left: float, width: float, bottom: float
) -> Sequence[str]:
    unit = f" {chart.unit}" if chart.unit else ""
    room = width - 18
    first, last = (
        shorten(f"{mark.shown}{unit}", (room - _STEPS * _SLIM) / 2, SMALL)
        for mark in (shades.least, shades.most)
    )
    size = min(_BROAD, (room - measure(first, SMALL) - measure(last, SMALL)) / _STEPS)
    x, y = left + measure(first, SMALL) + 10, bottom + 24
    parts = [text(first, left, y, class_="small muted")]
    for step in range(_STEPS):
        opacity = _LEAST + step / (_STEPS - 1) * (_MOST - _LEAST)
        parts.append(
            element(
                "rect",
                x=x + step * size,
                y=y - 7,
                width=size,
                height=14,
                class_="heat",
                fill_opacity=f"{opacity:.2f}",
            )
        )
    end = x + _STEPS * size + 8
    words = [f"{chart.better} is better"] if chart.better else []
    words += ["logarithmic scale"] if chart.log else []
    parts.append(text(last, end, y, class_="small muted"))
    parts.append(text(" · ".join(words), left, y + 20, class_="small muted"))
    return parts
