"""Two sides of a benchmark beside each other: points in, verdicts out. `stats` has the numbers."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.cells import Cells, cells_between, usual_cells
from orchestrator.comparisons.compared import ComparisonReport
from orchestrator.comparisons.exclusions import Doubtful, RunOfBoth, doubtful_of, runs_of
from orchestrator.comparisons.mismatches import Mismatches, find_mismatches
from orchestrator.comparisons.notes import notes_of, summary_of
from orchestrator.comparisons.rows import Judged, rows_of
from orchestrator.comparisons.sides import Side, check_differ
from orchestrator.core.errors import NotFoundError
from orchestrator.loadtools.metrics import PRIMARY, Metric, metrics_of
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Comparison, Outcome
from orchestrator.stats.interim import PENALTY
from orchestrator.stats.many import ToCompare, compare_many
from orchestrator.stats.matrix import judge_matrix
from orchestrator.stats.unpaired import compare_unpaired

#: What decides where nobody said so: results from elsewhere.
_USUAL_PRIMARY = tuple(dict.fromkeys(PRIMARY["closed"] + PRIMARY["open"]))

#: Place of a cell, as text → metric → comparison.
Compared = Mapping[str, Mapping[str, Outcome]]


def compare_commits(
    member: Member,
    *,
    benchmark: Benchmark,
    baseline: Commit,
    contender: Commit,
    run: Run | None = None,
) -> ComparisonReport:
    """`compare_sides` of two commits, over all that both were measured with."""
    sides = Side(commit=baseline), Side(commit=contender)
    return compare_sides(member, benchmark=benchmark, sides=sides, run=run)


def compare_sides(
    member: Member,
    *,
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    run: Run | None = None,
    all_metrics: bool = True,
) -> ComparisonReport:
    """The comparison of two sides, by the blocks that both were measured in.

    Where they share none, it is one of all trials of both, and says so. `run`: only what it
    measured counts. Without `all_metrics` only those that decide are looked at. NotFoundError where
    one side was not measured, InvalidRequestError for a side against itself.
    """
    check_differ(*sides)
    if not member.sees_project(benchmark.project_id, benchmark.project.team_id):
        raise NotFoundError(f"the team has no benchmark {benchmark.slug}")
    runs = runs_of(benchmark, sides[0].commit, sides[1].commit, run)
    definition = _definition(benchmark, sides, runs)
    primary, open_loop = (_USUAL_PRIMARY, False) if definition is None else _primary(definition)
    cells, mismatches, compared = _side_by_side(
        benchmark, sides, runs, run, None if all_metrics else primary
    )
    matrix = judge_matrix(
        compared,
        primary=deciding(primary, compared),
        counted=PENALTY if any(each.looked for each in runs) else 1.0,
    )
    judged = Judged(compared=compared, matrix=matrix, mismatches=mismatches, open_loop=open_loop)
    return _report(benchmark, sides, runs, cells, judged)


def _side_by_side(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[RunOfBoth],
    run: Run | None,
    metrics: Collection[str] | None,
) -> tuple[Cells, Mismatches, Compared]:
    """The values of both sides, what is not like for like about them, and the comparisons."""
    doubtful = doubtful_of(runs)
    if metrics is not None and run is None:
        usual = usual_cells(benchmark, sides, runs, doubtful, metrics)
        if usual is not None:
            cells, compared = usual
            return cells, Mismatches(), compared
    cells = _cells(benchmark, sides, runs, doubtful, run, metrics)
    mismatches = find_mismatches(benchmark, sides, cells.cells, cells.names)
    return cells, mismatches, _compared(cells.cells, mismatches)


def _report(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[RunOfBoth],
    cells: Cells,
    judged: Judged,
) -> ComparisonReport:
    matrix = judged.matrix
    cases = rows_of(cells, judged, runs)
    return ComparisonReport(
        benchmark=benchmark,
        sides=sides,
        verdict=matrix.verdict,
        summary=summary_of(matrix.headline, sides),
        cases=cases,
        notes=notes_of(cells, cases, runs),
        mismatches=judged.mismatches.found,
        paired=all(each.paired for each in cases),
        tests=sum(q is not None for q in matrix.q_values.values()),
        changed=matrix.changed,
        survived=matrix.survived,
        open_loop=judged.open_loop,
    )


def _cells(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[RunOfBoth],
    doubtful: Sequence[Doubtful],
    run: Run | None,
    metrics: Collection[str] | None,
) -> Cells:
    """The cells of these metrics; of all where none of them was measured, elsewhere as it were."""
    cells = cells_between(benchmark, sides, runs, doubtful, run=run, metrics=metrics)
    if metrics is not None and not any(cell.metrics for cell in cells.cells):
        cells = cells_between(benchmark, sides, runs, doubtful, run=run, metrics=None)
    if not cells.cells and not cells.void:
        raise NotFoundError(_why_nothing(sides, run))
    return cells


#: OFFSET 0 makes PostgreSQL ask it commit by commit, and stop when there are enough of them.
_HAS_POINTS = """
EXISTS (SELECT FROM results_point point JOIN results_series series ON series.id = point.series_id
        WHERE point.commit_id = benchmarks_commit.id AND series.benchmark_id = %s OFFSET 0)
"""


def commits_measured(
    member: Member, benchmark: Benchmark, limit: int | None = None, *, sha: str = ""
) -> list[Commit]:
    """The commits with at least one measured trial, newest first; the `limit` newest, or those
    whose hash begins with `sha`."""
    if not member.sees_project(benchmark.project_id, benchmark.project.team_id):
        return []
    measured = RawSQL(_HAS_POINTS, [benchmark.pk], output_field=BooleanField())
    commits = benchmark.project.commits.filter(measured, sha__startswith=sha)
    ordered = commits.order_by(F("position").desc(nulls_last=True), "-committed_at")
    return list(ordered[:limit] if limit else ordered)


@lru_cache(maxsize=512)
def _primary(definition: UUID) -> tuple[tuple[str, ...], bool]:
    """The metrics that decide, and whether the loop is open; a definition never changes."""
    found = primary_of(spec_of(Definition.objects.get(pk=definition)))
    return found, found == PRIMARY["open"]


def _definition(
    benchmark: Benchmark, sides: tuple[Side, Side], runs: Sequence[RunOfBoth]
) -> UUID | None:
    """The one that says what decides: as asked for, else of the newest that measured both."""
    if sides[0].definition is not None:
        return sides[0].definition.pk
    if runs:
        return runs[0].definition
    return benchmark.definitions.order_by("-version").values_list("pk", flat=True).first()


def deciding(primary: Collection[str], compared: Compared) -> Collection[str]:
    """All metrics where none of the primary ones was measured."""
    present = {metric for metrics in compared.values() for metric in metrics}
    return primary if present & set(primary) or not present else present


def _compared(cells: Sequence[Cell], mismatches: Mismatches) -> Compared:
    """Cell → metric → comparison, of what may be judged; metrics in the order of the registry."""
    infos = _judged_metrics(cells)
    asked: list[tuple[str, str, bool, ToCompare]] = []
    for place, cell in enumerate(cells):
        for info in infos:
            values = cell.metrics.get(info.key)
            if values is None or (place in mismatches.withheld and info.key.startswith("latency.")):
                continue
            if min(map(min, values)) < 0:
                continue
            one = ToCompare(
                baseline=values[0], contender=values[1], better=info.better, margin=info.margin
            )
            asked.append((str(place), info.key, cell.paired, one))
    paired = iter(compare_many([one for *_, is_paired, one in asked if is_paired]))
    found: dict[str, dict[str, Comparison]] = {str(place): {} for place in range(len(cells))}
    for cell_name, key, is_paired, one in asked:
        found[cell_name][key] = next(paired) if is_paired else _unpaired(one)
    return found


def _unpaired(one: ToCompare) -> Comparison:
    return compare_unpaired(one.baseline, one.contender, better=one.better, margin=one.margin)


def _judged_metrics(cells: Sequence[Cell]) -> list[Metric]:
    keys = {key for cell in cells for key in cell.metrics}
    return [info for info in metrics_of(keys) if not info.informational]


def _why_nothing(sides: tuple[Side, Side], run: Run | None) -> str:
    names = " and ".join(dict.fromkeys(side.commit.short_sha for side in sides))
    if run is not None:
        return f"this run did not measure {names} together; start a run with both of them"
    return (
        f"there is nothing of {names} that could be put side by side: one of them was not "
        "measured in this way; start a run with both of them"
    )
