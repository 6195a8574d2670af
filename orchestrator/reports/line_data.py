"""What charts of lines show: values over the numbers of a dimension, and latency curves. Pure."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from orchestrator.reports.chart_cells import (
    build_mark,
    choose_columns,
    describe_left_out,
    find_metric_head,
    is_chosen,
    name_axis,
    number_colours,
)
from orchestrator.reports.chart_model import Excerpt, Line, LineChart, Mark, Panel
from orchestrator.reports.chart_spec import MAX_CURVES, ChartSpec
from orchestrator.reports.pivot_model import PivotTable
from orchestrator.reports.spec_fields import parse_percentile

MAX_PANELS = 12

#: The position on the horizontal axis, if there is one, and the value.
_Point = tuple[float | None, Mark]


def extract_curves(table: PivotTable, spec: ChartSpec) -> Excerpt | None:
    """Return a curve for each column; other metrics and units than the first are left out."""
    curves = {title: points for title, points in _collect_curves(table, spec).items() if points[1:]}
    if not curves:
        return None
    titles = list(curves)[:MAX_CURVES]
    numbers = number_colours(titles)
    unit = _find_latency_unit(table)
    places = sorted({x for title in titles for x, _ in curves[title]})
    data = LineChart(
        x_title="percentile",
        y_title=f"Latency ({unit})" if unit else "Latency",
        log=spec.scale == "log",
        panels=(
            Panel(
                title="",
                lines=tuple(_build_line(title, numbers[title], curves[title]) for title in titles),
            ),
        ),
        ticks=tuple((x, f"p{_read_percentile(x):g}") for x in places),
    )
    return Excerpt(data=data, note=describe_left_out(len(curves), MAX_CURVES, "curve"))


def _collect_curves(table: PivotTable, spec: ChartSpec) -> dict[str, list[tuple[float, Mark]]]:
    """Return the points of each curve by its title."""
    at = find_metric_head(table)
    unit = _find_latency_unit(table)
    curves: dict[str, list[tuple[float, Mark]]] = defaultdict(list)
    for row in table.rows if at is not None else ():
        percentile = parse_percentile(row.values[at or 0])
        if percentile is None:
            continue
        others = [head for place, head in enumerate(row.heads) if place != at]
        for place, column in enumerate(table.columns):
            if column.kind != "value" or not is_chosen(spec, column):
                continue
            mark = build_mark(row, column, place, name=f"p{percentile:g}")
            if mark is not None and row.cells[place].unit == unit:
                title = " · ".join(filter(None, [*others, column.title]))
                curves[title].append((_place_percentile(percentile), mark))
    return curves


def _find_latency_unit(table: PivotTable) -> str:
    """Return the unit of the first percentile with a value."""
    at = find_metric_head(table)
    units = (
        cell.unit
        for row in table.rows
        if at is not None and parse_percentile(row.values[at]) is not None
        for cell in row.cells
        if cell.value is not None
    )
    return next(units, "")


def extract_lines(table: PivotTable, spec: ChartSpec) -> Excerpt | None:
    dimensions = [head.dimension for head in table.heads]
    if spec.x not in dimensions:
        return None
    x_at = dimensions.index(spec.x)
    panel_at = dimensions.index(spec.panels) if spec.panels in dimensions else None
    places = choose_columns(table, spec)
    if not places:
        return None
    panels: dict[str, dict[str, list[_Point]]] = defaultdict(dict)
    for row in table.rows:
        panel = "" if panel_at is None else row.heads[panel_at]
        others = [head for at, head in enumerate(row.heads) if at not in (x_at, panel_at)]
        for place in places:
            column = table.columns[place]
            # A value that has no display name is none: no compression has no level.
            x = _parse_number(row.values[x_at]) if row.heads[x_at] else None
            words = [*others, *([column.title] if len(places) > 1 else [])]
            if x is None:
                words.append(row.heads[x_at] or f"without {table.heads[x_at].title}")
            title = " · ".join(filter(None, words)) or column.title
            if mark := build_mark(row, column, place):
                panels[panel].setdefault(title, []).append((x, mark))
    name = name_axis([table.columns[place] for place in places])
    return _build_line_chart(spec, name, table.heads[x_at].title, panels)


def _build_line_chart(
    spec: ChartSpec,
    name: str,
    x_title: str,
    panels: Mapping[str, Mapping[str, Sequence[_Point]]],
) -> Excerpt | None:
    titles = list(dict.fromkeys(title for lines in panels.values() for title in lines))
    numbers = number_colours(titles[:MAX_CURVES])
    filled = [
        Panel(
            title=panel,
            lines=tuple(
                _build_line(title, numbers[title], points)
                for title, points in lines.items()
                if title in numbers
            ),
        )
        for panel, lines in panels.items()
    ]
    shown = [panel for panel in filled if panel.lines][:MAX_PANELS]
    if max((len(line.points) for panel in shown for line in panel.lines), default=0) < 2:
        return None
    notes = (
        describe_left_out(len(titles), MAX_CURVES, "line"),
        describe_left_out(len(panels), MAX_PANELS, "panel"),
    )
    data = LineChart(
        x_title=x_title,
        y_title=name,
        log=spec.scale == "log",
        panels=tuple(shown),
    )
    return Excerpt(data=data, note=" ".join(filter(None, notes)))


def _build_line(title: str, number: int, points: Sequence[_Point]) -> Line:
    known = [(x, mark) for x, mark in points if x is not None]
    unplaced = [mark for x, mark in points if x is None]
    return Line(
        title=title,
        number=number,
        published=all(mark.published for _, mark in points),
        points=_sort_points(known),
        level=unplaced[0] if unplaced and not known else None,
    )


def _sort_points(points: Sequence[tuple[float, Mark]]) -> tuple[tuple[float, Mark], ...]:
    return tuple(sorted(points, key=lambda point: point[0]))


def _place_percentile(percentile: float) -> float:
    """Return log10(1 / (1 - q)): each step in the tail is a decade."""
    return -math.log10(1 - percentile / 100)


def _read_percentile(place: float) -> float:
    return round(100 * (1 - 10**-place), 4)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
