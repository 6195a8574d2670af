"""The cases of a run as a table: the state of each cell, its numbers, and its verdict so far."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest

from cli.pitwall.units import format_value
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.verdict_cache import CaseChange, VerdictCard
from orchestrator.loadtools.metrics import Metric
from orchestrator.measurements.run_numbers import (
    CaseNumbers,
    RunNumbers,
    UsableTrial,
    load_run_numbers,
)
from orchestrator.runs.grid import Cell, Column, Grid, Row, get_host_key, load_grid
from orchestrator.runs.models import Run, Until, Variant
from orchestrator.runs.selectors import RunProgress
from orchestrator.web.runs.trials_table import build_metric_heads
from orchestrator.web.templatetags.pitwall import STATE_SYMBOLS, VERDICT_SYMBOLS

ROWS_A_PAGE = 100
FILTERS = {"all": "All", "open": "Going on", "failed": "Failed", "changed": "Changed"}
#: A cell of a host shows the numbers of this many variants.
VARIANTS_SHOWN = 3
#: States of a cell without a usable block that would look like a success.
_MEASURED = frozenset({"done", "cut short"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """A cell as texts for drawing: there may be hundreds of them each second.

    `done` counts its trials and the usable ones. `numbers`: (commit, medians), the commit only if
    the cell shows several. `verdict` is the contender's so far, if it changed.
    """

    state: str
    symbol: str
    tenths: str
    done: str
    failed: str
    numbers: tuple[tuple[str, str], ...]
    verdict: str
    verdict_symbol: str
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRowView:
    row: Row
    cells: tuple[CellView | None, ...]


class CellBuilder:
    """Builds the views of the cells of a run, from its numbers and its changes so far."""

    def __init__(
        self,
        now: RunProgress,
        grid: Grid,
        numbers: RunNumbers,
        changes: Mapping[tuple[int, str], CaseChange],
    ) -> None:
        hosts = {part.job.pk: get_host_key(part.job) for part in now.jobs}

        def column(trial: UsableTrial) -> Hashable:
            return hosts[trial.job] if grid.by_host else trial.variant

        self._numbers = numbers.group(column)
        self._metrics = numbers.metrics
        self._names = {each.pk: each.commit.sha[:7] for each in now.run.variants.all()}
        self._columns = grid.columns
        self._changes = changes

    def build_row(self, row: Row) -> CaseRowView:
        pairs = zip(row.cells, self._columns, strict=True)
        return CaseRowView(
            row=row,
            cells=tuple(
                self._build_cell(row.case.pk, cell, column) if cell else None
                for cell, column in pairs
            ),
        )

    def _build_cell(self, case: int, cell: Cell, column: Column) -> CellView:
        change = self._changes.get((case, str(column.key)))
        numbers = self._numbers.get((case, column.key))
        verdict = change.verdict if change else ""
        unusable = cell.state in _MEASURED and not (numbers and numbers.blocks)
        state = "unusable" if unusable else cell.state
        return CellView(
            state=state,
            symbol=STATE_SYMBOLS.get(state, "○"),
            tenths=str(cell.tenths),
            done=_describe_progress(cell, numbers.usable if numbers else 0),
            failed=str(cell.failed or ""),
            numbers=self._format_numbers(numbers),
            verdict=verdict,
            verdict_symbol=VERDICT_SYMBOLS.get(verdict, ""),
            change=change.change if change else None,
        )

    def _format_numbers(self, numbers: CaseNumbers | None) -> tuple[tuple[str, str], ...]:
        medians = numbers.medians if numbers else {}
        several = len(medians) > 1
        return tuple(
            (name if several else "", _format_medians(self._metrics, medians[variant]))
            for variant, name in self._names.items()
            if any(value is not None for value in medians.get(variant, ()))
        )[:VARIANTS_SHOWN]


def build_cases_context(
    request: HttpRequest, now: RunProgress, cards: Iterable[VerdictCard]
) -> dict[str, Any]:
    """Return the context of the table. `request` selects the cases: `?cases=failed&page=2`."""
    run, grid = now.run, load_grid(now)
    changes = _map_changes(run, grid, cards)
    changed = {case for case, _ in changes}
    rows = {
        "all": list(grid.rows),
        "open": [row for row in grid.rows if row.goes_on],
        "failed": [row for row in grid.rows if row.failed],
        "changed": [row for row in grid.rows if row.case.pk in changed],
    }
    filter_key = request.GET.get("cases", "all")
    filter_key = filter_key if filter_key in FILTERS else "all"
    page = Paginator(rows[filter_key], ROWS_A_PAGE).get_page(request.GET.get("page"))
    numbers = load_run_numbers(run, [row.case.pk for row in page])
    builder = CellBuilder(now, grid, numbers, changes)
    return {
        "grid": grid,
        "rows": [builder.build_row(row) for row in page],
        "cell_metrics": [head.text for head in build_metric_heads(run, numbers.metrics)],
        "cases_page": page,
        "selected_cases": filter_key,
        "filters": [(key, title, len(rows[key])) for key, title in FILTERS.items()],
        "finished": sum(_is_finished(run, row) for row in grid.rows),
        "changed_cases": len(changed),
        "pages_more": f"&cases={filter_key}#cases",
        "query": f"cases={filter_key}&page={page.number}",
    }


def _is_finished(run: Run, row: Row) -> bool:
    """Return whether it was measured and no trial is to come.

    If the run continues until its cases are decided, the case must be decided.
    """
    if run.until == Until.ROUNDS:
        return not row.goes_on and any(cell.measured for cell in row.cells if cell)
    stands = {each.state for each in row.case_statuses}
    return bool(stands) and stands <= {"decided", "stopped early"}


def _map_changes(
    run: Run, grid: Grid, cards: Iterable[VerdictCard]
) -> dict[tuple[int, str], CaseChange]:
    """Return (case, key of the column) → its change; the worst if a host has several contenders."""
    variants: dict[int, Variant] = {each.commit_id: each for each in run.variants.all()}
    places: dict[tuple[int, str], CaseChange] = {}
    for card in cards:
        for change in card.changes:
            column = change.host if grid.by_host else str(variants[card.contender.pk].pk)
            known = places.get((change.case, column))
            if known is None or ORDER[change.verdict] < ORDER[known.verdict]:
                places[change.case, column] = change
    return places


def _describe_progress(cell: Cell, usable: int) -> str:
    """Return "8/10" while trials are to come, then "7 of 10 usable"."""
    if cell.done and not cell.planned:
        return f"{usable} of {cell.done} usable"
    unusable = f", {usable} usable" if usable < cell.done else ""
    return f"{cell.done}/{cell.total}{unusable}"


def _format_medians(metrics: Iterable[Metric], values: Iterable[float | None]) -> str:
    return " · ".join(
        format_value(value, metric.unit) for metric, value in zip(metrics, values, strict=True)
    )
