"""The charts of a report as pictures: part of a page, and SVG files.

The server draws them, so a page without scripts, a file and a public page show the same picture.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from orchestrator.reports.bar_drawing import draw_bars, draw_ranks
from orchestrator.reports.chart_data import choose_chart, extract_chart
from orchestrator.reports.chart_model import BarChart, ChartData, HeatMap, LineChart, RankChart
from orchestrator.reports.chart_spec import ChartSpec
from orchestrator.reports.heat_drawing import draw_heat_map
from orchestrator.reports.line_drawing import draw_lines
from orchestrator.reports.pivot_model import PivotTable
from orchestrator.reports.report_builder import Report
from orchestrator.reports.svg import clean, element, shorten, text

#: The widths of a picture in pixels: for desktops and files, and for phones.
WIDE, NARROW = 900, 360
_KINDS = {
    "bars": "Bar chart",
    "lines": "Line chart",
    "curves": "Latency curves",
    "heatmap": "Heat map",
    "ranks": "Ranks",
}
_COLOUR = re.compile(r"(--[\w-]+):\s*light-dark\((#\w+),\s*(#\w+)\)")
_MARGIN, _HEADING = 16, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart; `number` counts those of the report from 1. `note`: what it leaves out."""

    number: int
    title: str
    table: str
    note: str
    data: ChartData

    @property
    def file_name(self) -> str:
        return f"chart-{self.number}.svg"

    @property
    def description(self) -> str:
        """Return what the picture shows, for people who do not see it."""
        words = f"{self.title}: {self.table}" if self.table else self.title
        return clean(f"{words}. The values are in the table below.")

    @property
    def wide(self) -> SafeString:
        return self._draw(WIDE)

    @property
    def narrow(self) -> SafeString:
        return self._draw(NARROW)

    def render_file(self) -> str:
        """Return a whole SVG file, with its colours for light and dark screens."""
        inner, height = _draw(self.data, WIDE)
        full, tall = WIDE + 2 * _MARGIN, height + _HEADING + 2 * _MARGIN
        heading = " – ".join(filter(None, [self.table, self.title]))
        parts = [
            element("title", _escape(self.description)),
            element("style", _read_style()),
            element("rect", width=full, height=tall, class_="paper"),
            text(shorten(heading, WIDE, 15), _MARGIN, _MARGIN + 10, class_="heading"),
            element("g", inner, transform=f"translate({_MARGIN} {_MARGIN + _HEADING})"),
        ]
        root = element(
            "svg",
            "".join(parts),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {full} {tall:.0f}",
            width=full,
            height=round(tall),
            class_="plot",
            role="img",
        )
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'

    def _draw(self, width: int) -> SafeString:
        """Return the element for a page; its texts are escaped."""
        inner, height = _draw(self.data, width)
        picture = element(
            "svg",
            inner,
            viewBox=f"0 0 {width} {height:.0f}",
            class_=f"plot {'wide' if width == WIDE else 'narrow'}",
            role="img",
            aria_label=self.description,
        )
        return mark_safe(picture)


def build_charts(report: Report) -> list[list[Chart]]:
    """Return the charts of each table of a report."""
    number = 0
    charts: list[list[Chart]] = []
    for spec, table in zip(report.spec.tables, report.tables, strict=True):
        wanted = spec.charts
        if wanted is None:
            wanted = [chosen] if (chosen := choose_chart(table)) else []
        charts.append(list(_build_table_charts(table, wanted, number)))
        number += len(charts[-1])
    return charts


def _build_table_charts(
    table: PivotTable, specs: Sequence[ChartSpec], before: int
) -> Iterator[Chart]:
    number = before
    for spec in specs:
        if excerpt := extract_chart(table, spec):
            number += 1
            yield Chart(
                number=number,
                title=spec.title or _KINDS[spec.kind],
                table=table.title,
                note=excerpt.note,
                data=excerpt.data,
            )


def _draw(data: ChartData, width: int) -> tuple[str, float]:
    match data:
        case BarChart():
            return draw_bars(data, width)
        case LineChart():
            return draw_lines(data, width)
        case HeatMap():
            return draw_heat_map(data, width)
        case RankChart():
            return draw_ranks(data, width)


@cache
def _read_style() -> str:
    """Return the style sheet of charts with the colours of pages in place of their names.

    Programs that convert SVG do not know custom properties.
    """
    folder = settings.BASE_DIR / "static" / "css"
    colours = _COLOUR.findall((folder / "tokens.css").read_text())
    rules = (folder / "report-charts.css").read_text()
    rules = re.sub(r"/\*.*?\*/\s*", "", rules, flags=re.DOTALL)
    light, dark = rules, rules
    for name, by_day, at_night in colours:
        light = light.replace(f"var({name})", by_day)
        dark = dark.replace(f"var({name})", at_night)
    return _escape(f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")


def _escape(content: str) -> str:
    return content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
