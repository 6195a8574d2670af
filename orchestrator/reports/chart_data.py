"""What the charts of a report show, chosen from its tables. Pure.

A chart takes its values from the cells of a table, so it shows nothing that the table does not.
"""

from orchestrator.reports.chart_cells import (
    build_mark_or_word,
    choose_columns,
    count_values,
    describe_left_out,
    find_metric_head,
    format_with_unit,
    list_rows_with_values,
    name_axis,
    name_row,
    number_colours,
)
from orchestrator.reports.chart_model import (
    BarChart,
    BarSeries,
    Excerpt,
    HeatMap,
    RankChart,
    RankRow,
)
from orchestrator.reports.chart_spec import ChartSpec
from orchestrator.reports.line_data import extract_curves, extract_lines
from orchestrator.reports.pivot_model import PivotTable

#: More rows are unreadable; the table has them all.
MAX_ROWS = 60
MAX_SERIES, MAX_HEAT_COLUMNS = 6, 16


def choose_chart(table: PivotTable) -> ChartSpec | None:
    """Return the chart of a table that specifies none; None if no kind fits it."""
    if find_metric_head(table) is None:
        return None if len(table.rows) > MAX_ROWS else ChartSpec(kind="bars")
    return ChartSpec(kind="curves")


def extract_chart(table: PivotTable, spec: ChartSpec) -> Excerpt | None:
    """Return the data of a chart; None if fewer than two values can be drawn."""
    match spec.kind:
        case "bars":
            return _extract_bars(table, spec)
        case "lines":
            return extract_lines(table, spec)
        case "curves":
            return extract_curves(table, spec)
        case "heatmap":
            return _extract_heat_map(table, spec)
        case "ranks":
            return _extract_ranks(table)


def _extract_bars(table: PivotTable, spec: ChartSpec) -> Excerpt | None:
    places = choose_columns(table, spec)
    rows = list_rows_with_values(table, places[:MAX_SERIES])
    if not places or count_values(rows, places) < 2:
        return None
    shown = rows[:MAX_ROWS]
    numbers = number_colours([table.columns[place].title for place in places[:MAX_SERIES]])
    series = tuple(
        BarSeries(
            title=table.columns[place].title,
            number=numbers[table.columns[place].title],
            published=table.columns[place].published,
            marks=tuple(build_mark_or_word(row, table.columns[place], place) for row in shown),
        )
        for place in places[:MAX_SERIES]
    )
    axis = name_axis([table.columns[place] for place in places])
    labels = tuple(name_row(row) for row in shown)
    notes = (
        describe_left_out(len(rows), MAX_ROWS, "row"),
        describe_left_out(len(places), MAX_SERIES, "column"),
    )
    return Excerpt(
        data=BarChart(axis=axis, labels=labels, series=series), note=" ".join(filter(None, notes))
    )


def _extract_ranks(table: PivotTable) -> Excerpt | None:
    if table.sorted_by is None:
        return None
    ranked = [row for row in table.rows if row.ranks is not None]
    if len(ranked) < 2:
        return None
    column = table.columns[table.sorted_by]
    rows: list[RankRow] = []
    place = 0
    for row in table.rows:
        place = 0 if row.first_of_group else place
        if row.ranks is None:
            continue
        place += 1
        rows.append(
            RankRow(
                label=name_row(row),
                best=row.ranks.best,
                worst=row.ranks.worst,
                place=place,
                shown=format_with_unit(row.cells[table.sorted_by], column),
                first_of_group=place == 1 and bool(rows),
            )
        )
    axis = f"Rank by {column.heading}"
    return Excerpt(
        data=RankChart(axis=axis, rows=tuple(rows[:MAX_ROWS])),
        note=describe_left_out(len(rows), MAX_ROWS, "row"),
    )


def _extract_heat_map(table: PivotTable, spec: ChartSpec) -> Excerpt | None:
    places = choose_columns(table, spec)
    shown, columns = table.rows[:MAX_ROWS], places[:MAX_HEAT_COLUMNS]
    if count_values(shown, columns) < 2:
        return None
    first = table.columns[places[0]]
    cells = tuple(
        tuple(build_mark_or_word(row, table.columns[place], place) for place in columns)
        for row in shown
    )
    notes = (
        describe_left_out(len(table.rows), MAX_ROWS, "row"),
        describe_left_out(len(places), MAX_HEAT_COLUMNS, "column"),
    )
    data = HeatMap(
        unit=first.unit,
        better=first.better or "",
        log=spec.scale == "log",
        labels=tuple(name_row(row) for row in shown),
        columns=tuple(table.columns[place].title for place in columns),
        cells=cells,
    )
    return Excerpt(data=data, note=" ".join(filter(None, notes)))
