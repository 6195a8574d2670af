"""Compares two sides of a benchmark: loads points, pairs them and judges each case.

The tests and intervals are in `orchestrator.stats`.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.selectors import load_stored_spec
from orchestrator.comparisons.exclusions import (
    FlaggedTrial,
    SharedRun,
    load_flagged_trials,
    load_shared_runs,
)
from orchestrator.comparisons.mismatches import Mismatches, find_mismatches
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.ranking import JudgedCases, load_trial_times, rank_cases
from orchestrator.comparisons.reasons import build_notes, summarise_comparison
from orchestrator.comparisons.report import CaseComparison, ComparisonReport
from orchestrator.comparisons.same_builds import build_same_build_notes, load_builds
from orchestrator.comparisons.selection import Selection, select_cases
from orchestrator.comparisons.sides import Side, check_sides_differ
from orchestrator.core.errors import NotFoundError
from orchestrator.loadtools.metrics import PRIMARY, Metric, find_metrics
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Comparison
from orchestrator.stats.interim import PENALTY
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import judge_matrix
from orchestrator.stats.unpaired import compare_unpaired

#: The primary metrics of a benchmark without a definition, whose results are imported.
_DEFAULT_PRIMARY = tuple(dict.fromkeys(PRIMARY["closed"] + PRIMARY["open"]))

#: Index of a case in the selection, as text → metric key → comparison.
Compared = Mapping[str, Mapping[str, Comparison]]


def compare_commits(
    member: Member,
    *,
    benchmark: Benchmark,
    baseline: Commit,
    contender: Commit,
    run: Run | None = None,
) -> ComparisonReport:
    """Compare two commits as `compare_sides` does, in all cases that both measured."""
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
    """Return the comparison of two sides, block by block.

    Sides that share no block are compared by all their trials, and the report is not `paired`.
    `run`: only its measurements count. Without `all_metrics` only the primary metrics are read.
    Raise NotFoundError if one side was not measured, InvalidRequestError for two equal sides.
    """
    check_sides_differ(*sides)
    if not member.sees_project(benchmark.project_id, benchmark.project.team_id):
        raise NotFoundError(f"the team has no benchmark {benchmark.slug}")
    runs = load_shared_runs(benchmark, sides[0].commit, sides[1].commit, run)
    definition = _find_definition(benchmark, sides, runs)
    primary, open_loop = (
        (_DEFAULT_PRIMARY, False) if definition is None else _load_primary(*definition)
    )
    selection = _select(
        benchmark, sides, runs, load_flagged_trials(runs), run, None if all_metrics else primary
    )
    mismatches = find_mismatches(benchmark, sides, selection.cases, selection.names)
    judged = judge_cases(
        selection,
        mismatches,
        primary,
        open_loop=open_loop,
        interim=any(shared.interim for shared in runs),
    )
    cases = rank_cases(selection, judged, load_trial_times(judged, runs))
    builds = load_builds(benchmark, sides[0].commit, sides[1].commit, run)
    same_builds = build_same_build_notes(builds, sides[0].commit.pk, sides[1].commit.pk)
    notes = build_notes(selection, cases, runs, same_builds)
    return build_report(benchmark, sides, judged, cases, notes)


def judge_cases(
    selection: Selection,
    mismatches: Mismatches,
    primary: Collection[str],
    *,
    open_loop: bool,
    interim: bool,
) -> JudgedCases:
    """The comparison of each case, and the verdict over all. `primary`: metrics that decide.

    `interim`: interim analyses could stop cases early, so each p-value is penalised.
    """
    compared = _compare_cases(selection.cases, mismatches)
    matrix = judge_matrix(
        compared,
        primary=choose_deciding_metrics(primary, compared),
        counted=PENALTY if interim else 1.0,
    )
    return JudgedCases(compared=compared, matrix=matrix, mismatches=mismatches, open_loop=open_loop)


def build_report(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    judged: JudgedCases,
    cases: tuple[CaseComparison, ...],
    notes: tuple[str, ...],
) -> ComparisonReport:
    matrix = judged.matrix
    return ComparisonReport(
        benchmark=benchmark,
        sides=sides,
        verdict=matrix.verdict,
        summary=summarise_comparison(matrix.headline, sides),
        cases=cases,
        notes=notes,
        mismatches=judged.mismatches.all,
        paired=all(case.paired for case in cases),
        tests=sum(q is not None for q in matrix.q_values.values()),
        changed=matrix.changed,
        survived=matrix.survived,
        open_loop=judged.open_loop,
    )


def _select(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[SharedRun],
    flagged: Sequence[FlaggedTrial],
    run: Run | None,
    metrics: Collection[str] | None,
) -> Selection:
    """Return the cases with these metrics; with all metrics if none of these was measured."""
    selection = select_cases(benchmark, sides, runs, flagged, run=run, metrics=metrics)
    if metrics is not None and not any(case.metrics for case in selection.cases):
        selection = select_cases(benchmark, sides, runs, flagged, run=run, metrics=None)
    if not selection.cases and not selection.excluded_cases:
        raise NotFoundError(_explain_nothing_to_compare(sides, run))
    return selection


def _load_primary(definition: UUID, digest: str) -> tuple[tuple[str, ...], bool]:
    """Return the primary metrics, and whether the loop is open."""
    metrics = load_stored_spec(definition, digest).primary_metrics
    return metrics, metrics == PRIMARY["open"]


def _find_definition(
    benchmark: Benchmark, sides: tuple[Side, Side], runs: Sequence[SharedRun]
) -> tuple[UUID, str] | None:
    """Return the id and the digest of the definition that names the primary metrics.

    It is the requested one, else the newest of both sides.
    """
    if sides[0].definition is not None:
        return sides[0].definition.pk, sides[0].definition.digest
    if runs:
        return runs[0].definition, runs[0].digest
    return benchmark.definitions.order_by("-version").values_list("pk", "digest").first()


def choose_deciding_metrics(primary: Collection[str], compared: Compared) -> Collection[str]:
    """Return the primary metrics; if none of them was measured, all metrics."""
    present = {metric for metrics in compared.values() for metric in metrics}
    return primary if present & set(primary) or not present else present


def _compare_cases(cases: Sequence[PairedCase], mismatches: Mismatches) -> Compared:
    """Compare each metric that may be judged, in the order of the registry."""
    infos = _list_judged_metrics(cases)
    requests: list[tuple[str, str, bool, ComparisonInput]] = []
    for index, case in enumerate(cases):
        for info in infos:
            values = case.metrics.get(info.key)
            withheld = index in mismatches.withheld and info.key.startswith("latency.")
            if values is None or withheld or min(map(min, values)) < 0:
                continue
            request = ComparisonInput(
                baseline=values[0], contender=values[1], better=info.better, margin=info.margin
            )
            requests.append((str(index), info.key, case.paired, request))
    paired = iter(compare_many([request for *_, is_paired, request in requests if is_paired]))
    compared: dict[str, dict[str, Comparison]] = {str(index): {} for index in range(len(cases))}
    for index_text, key, is_paired, request in requests:
        compared[index_text][key] = next(paired) if is_paired else _compare_unpaired(request)
    return compared


def _compare_unpaired(request: ComparisonInput) -> Comparison:
    return compare_unpaired(
        request.baseline, request.contender, better=request.better, margin=request.margin
    )


def _list_judged_metrics(cases: Sequence[PairedCase]) -> list[Metric]:
    keys = {key for case in cases for key in case.metrics}
    return [info for info in find_metrics(keys) if not info.informational]


def _explain_nothing_to_compare(sides: tuple[Side, Side], run: Run | None) -> str:
    names = " and ".join(dict.fromkeys(side.commit.short_sha for side in sides))
    if run is not None:
        return f"this run did not measure {names} together; start a run with both of them"
    return (
        f"{names} have no comparable results: one of them was not measured in this way; start a "
        "run with both of them"
    )
