"""The ranking of the rows of a pivot, and ties. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.pivot_model import Cell, TableColumn, TableRow
from orchestrator.reports.report_spec import Sort


def rank_rows(
    rows: Sequence[TableRow],
    columns: Sequence[TableColumn],
    sort: Sort | None,
    *,
    groups: Sequence[int],
    models: Collection[str],
) -> tuple[list[TableRow], int | None]:
    """Return the rows with their ranks, and the index of the column that they are sorted by.

    Rows that differ in the headings `groups` are ranked and placed separately. Latencies of open
    and closed loops are not ranked together: then the rows keep their order.
    """
    if sort is None:
        return list(rows), None
    place = _place(columns, sort.column)
    if _is_latency(columns[place].metric) and len(models) > 1:
        return list(rows), None
    together: dict[tuple[str, ...], list[TableRow]] = defaultdict(list)
    for row in rows:
        together[_read_group(row, groups)].append(row)
    ranked: list[TableRow] = []
    for number, group in enumerate(together.values()):
        inside = list(_rank_by_column(group, columns[place], sort, place))
        ranked += [replace(inside[0], first_of_group=number > 0), *inside[1:]]
    return ranked, place


def build_sorting_notes(
    rows: Sequence[TableRow], sort: Sort | None, sorted_by: int | None
) -> list[str]:
    notes = []
    if sort is not None and sorted_by is None:
        notes.append("Not ranked: latencies of open and closed loops are not comparable.")
    if any(row.tied for row in rows):
        notes.append(
            "= marks a row whose 95 % interval overlaps that of the row above: their order may be "
            "chance."
        )
    return notes


def _place(columns: Sequence[TableColumn], title: str) -> int:
    for place, column in enumerate(columns):
        if title in (column.title, column.heading):
            return place
    known = ", ".join(repr(column.title) for column in columns)
    raise InvalidRequestError(
        f"sort.column: there is no column {title!r}; there are {known}", field="sort.column"
    )


def _is_latency(metric: str | None) -> bool:
    return bool(metric) and str(metric).startswith("latency.")


def _read_group(row: TableRow, groups: Sequence[int]) -> tuple[str, ...]:
    return tuple(row.heads[place] for place in groups)


def _rank_by_column(
    rows: Sequence[TableRow], column: TableColumn, sort: Sort, place: int
) -> Iterator[TableRow]:
    """Yield rows with a value first; those of reference results are among them without a rank."""
    falling = sort.order == "descending" or (sort.order == "best" and column.better == "higher")
    known = [row for row in rows if row.cells[place].value is not None]
    known.sort(key=lambda row: row.cells[place].value or 0.0, reverse=falling)
    above: Cell | None = None
    rank = 0
    for row in known:
        cell = row.cells[place]
        if cell.published:
            yield row
            continue
        rank += 1
        yield replace(row, rank=rank, tied=above is not None and _intervals_overlap(above, cell))
        above = cell
    yield from (row for row in rows if row.cells[place].value is None)


def _intervals_overlap(one: Cell, other: Cell) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return one.value == other.value
    return one.low <= other.high and other.low <= one.high
