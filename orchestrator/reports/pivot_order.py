"""The ranking of the rows of a pivot, with the intervals of their ranks. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.pivot_model import TableColumn, TableRow
from orchestrator.reports.report_spec import Sort
from orchestrator.stats.interim import INTERIM_ALPHA
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.ranks import ALPHA, RankInterval, compute_ranking
from orchestrator.stats.unpaired import FEWEST_RUNS


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
    if any(row.groups for row in rows):
        notes.append(
            "#: the ranks that a row may have. Group: rows without a common letter differ. Both at "
            f"95 % for all rows together. Rows with {FEWEST_BLOCKS} or more common blocks of a "
            "contest are compared in pairs, all others by their means."
        )
    elif any(row.ranks is not None and row.ranks.best < row.ranks.worst for row in rows):
        notes.append(
            "#: the ranks that a row may have, at 95 % for all rows together. Rows are not paired: "
            "the definition has no contest axis. A row without a standard error, such as of fewer "
            f"than {FEWEST_RUNS} runs, may have any rank."
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
    own = [row for row in known if not row.cells[place].published]
    cells = [row.cells[place] for row in own]
    entries = [cell.entry for cell in cells]
    analysed = any(entry is not None and entry.interim for entry in entries)
    ranking = compute_ranking(
        [cell.tested for cell in cells],
        entries,
        falling=falling,
        alpha=INTERIM_ALPHA if analysed else ALPHA,
    )
    groups = ranking.groups if any(entries) else [""] * len(own)
    ranks = iter(zip(ranking.intervals, groups, strict=True))
    for row in known:
        yield row if row.cells[place].published else _set_ranks(row, *next(ranks))
    yield from (row for row in rows if row.cells[place].value is None)


def _set_ranks(row: TableRow, ranks: RankInterval, groups: str) -> TableRow:
    return replace(row, ranks=ranks, groups=groups)
