"""Compares two sides of a benchmark: loads points, pairs them and judges each case.

The tests and intervals are in `orchestrator.stats`.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.selectors import StoredSpec, load_stored_spec
from orchestrator.comparisons.exclusions import (
    Exclusions,
    SharedRun,
    load_flagged_trials,
    load_shared_runs,
)
from orchestrator.comparisons.mismatches import (
    Mismatches,
    find_mismatches,
    hide_host_settings,
)
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.ranking import JudgedCases, load_trial_times, rank_cases
from orchestrator.comparisons.reasons import build_notes, summarise_comparison
from orchestrator.comparisons.report import CaseComparison, CaseName, ComparisonReport
from orchestrator.comparisons.same_builds import build_same_build_notes, load_builds
from orchestrator.comparisons.selection import Selection, select_cases
from orchestrator.comparisons.sensitivity import (
    build_sensitivity,
    leave_out_suspects,
    list_suspect_cases,
)
from orchestrator.comparisons.sides import Side, check_sides_differ
from orchestrator.comparisons.spending import load_spending
from orchestrator.core.errors import NotFoundError
from orchestrator.loadtools.metrics import (
    PRIMARY,
    Metric,
    choose_deciding_metrics,
    find_metrics,
)
from orchestrator.measurements.build_noise import BuildNoiseKey, load_build_noise
from orchestrator.results.models import Point
from orchestrator.runs.models import Run
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.comparison import Comparison
from orchestrator.stats.conclusion import CaseBlocks, conclude_matrix, withhold_cells
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import Cell, MatrixVerdict, judge_matrix
from orchestrator.stats.saturated_blocks import (
    SaturatedBlock,
    SaturatedEstimate,
    estimate_with_saturated,
)
from orchestrator.stats.selective_inference import adjust_claims
from orchestrator.stats.unpaired import compare_unpaired

#: The primary metrics of a benchmark without a definition, whose results are imported.
_DEFAULT_PRIMARY = tuple(dict.fromkeys(PRIMARY["closed"] + PRIMARY["open"]))

#: The definition of each side, None without one.
SideSpecs = tuple[StoredSpec | None, StoredSpec | None]

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
    specs = _load_specs(benchmark, sides, runs)
    selection = _select(benchmark, sides, runs, run, specs, all_metrics=all_metrics)
    mismatches = find_mismatches(benchmark, sides, selection.cases, selection.names)
    if isinstance(member, Visitor):
        mismatches = hide_host_settings(mismatches)
    has_steps = any(each is not None and each.spec.has_build_steps for each in specs)
    judged = judge_cases(
        selection,
        mismatches,
        specs,
        load_spending(runs, selection.cases),
        load_build_noise(*_list_places(selection)) if has_steps else {},
    )
    cases = rank_cases(selection, judged, load_trial_times(judged, runs))
    builds = load_builds(benchmark, sides[0].commit, sides[1].commit, run)
    same_builds = build_same_build_notes(builds, sides[0].commit.pk, sides[1].commit.pk)
    notes = build_notes(
        selection, cases, runs, same_builds, judged.sensitivity, has_steps=has_steps
    )
    return build_report(benchmark, sides, judged, cases, notes)


def judge_cases(
    selection: Selection,
    mismatches: Mismatches,
    specs: SideSpecs,
    spending: Mapping[str, Spending],
    build_noise: Mapping[BuildNoiseKey, BuildNoise],
) -> JudgedCases:
    """The comparison of each case by its own primary metrics, and the verdict over all.

    The other metrics are a family of their own in the correction for many tests. `spending`: case →
    the verdicts that were taken on its blocks. `build_noise`: of the hosts, as calibrated. If there
    are blocks with a suspect trial, the primary metrics are judged without them as well.
    """
    every = {str(index): case.metrics.keys() for index, case in enumerate(selection.cases)}
    compared: Compared = _compare_cases(selection, mismatches, build_noise, every)
    primary = _list_deciding_metrics(selection, specs)
    matrix = _judge_primary(selection, compared, primary, spending)
    # The comparisons of cases without suspect blocks are the same without these blocks.
    wanted = {case: primary[case] for case in list_suspect_cases(selection)}
    sensitivity = None
    if wanted:
        certain = leave_out_suspects(selection)
        fewer = {**compared, **_compare_cases(certain, mismatches, build_noise, wanted)}
        without = _judge_primary(certain, fewer, primary, spending)
        sensitivity = build_sensitivity(selection, matrix, without)
    others = {case: metrics.keys() - set(primary[case]) for case, metrics in compared.items()}
    blocks = _collect_blocks(selection)
    informing = judge_matrix(compared, primary=others, spending=spending)
    informing = withhold_cells(informing, blocks)
    for family in (matrix, informing):
        compared = adjust_claims(compared, family, spending)
    return JudgedCases(
        compared=compared,
        matrix=matrix,
        others=informing,
        blocks=blocks,
        mismatches=mismatches,
        spending=spending,
        open_loops=_find_open_loops(selection, specs[0]),
        with_saturated=_estimate_with_saturated(selection, compared),
        sensitivity=sensitivity,
    )


def _list_deciding_metrics(selection: Selection, specs: SideSpecs) -> dict[str, Sequence[str]]:
    names = selection.names.cases
    return {
        str(index): choose_deciding_metrics(_list_primary(case, specs, names), case.metrics)
        for index, case in enumerate(selection.cases)
    }


def _judge_primary(
    selection: Selection,
    compared: Compared,
    primary: Mapping[str, Sequence[str]],
    spending: Mapping[str, Spending],
) -> MatrixVerdict:
    """Return the verdicts of the metrics that decide, with failures and excluded blocks."""
    matrix = judge_matrix(compared, primary=primary, spending=spending)
    return conclude_matrix(matrix, compared, _collect_blocks(selection))


def _estimate_with_saturated(
    selection: Selection, compared: Compared
) -> dict[Cell, SaturatedEstimate]:
    """Return the change of each latency with the saturated blocks, where there are some."""
    inputs: dict[Cell, tuple[ComparisonInput, list[SaturatedBlock]]] = {}
    for index, (case, exclusions) in enumerate(
        zip(selection.cases, selection.exclusions, strict=True)
    ):
        if not case.paired or not exclusions.saturated:
            continue
        for key, result in compared[str(index)].items():
            blocks = exclusions.list_saturated_blocks(key) if "latency." in key else []
            if blocks:
                inputs[str(index), key] = _build_input(case, key, result), blocks
    estimates = estimate_with_saturated(list(inputs.values()))
    return {
        cell: estimate
        for cell, estimate in zip(inputs, estimates, strict=True)
        if estimate is not None
    }


def _collect_blocks(selection: Selection) -> dict[str, CaseBlocks]:
    """Return the blocks of each case: first the compared ones, then those without a block."""
    pairs = zip(selection.cases, selection.exclusions, strict=True)
    blocks = [_count_blocks(case, exclusions) for case, exclusions in pairs]
    blocks += [
        CaseBlocks(excluded=each.excluded, outcomes=each.outcomes)
        for each in selection.excluded_cases.values()
    ]
    return {str(index): each for index, each in enumerate(blocks)}


def _count_blocks(case: PairedCase, exclusions: Exclusions) -> CaseBlocks:
    """Return the blocks of a compared case; of sides that share none, their trials."""
    if case.paired:
        return CaseBlocks(
            complete=case.count, excluded=exclusions.excluded, outcomes=exclusions.outcomes
        )
    trials = max((sum(map(len, values)) for values in case.metrics.values()), default=0)
    return CaseBlocks(complete=trials, excluded=case.invalid_trials)


def build_report(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    judged: JudgedCases,
    cases: tuple[CaseComparison, ...],
    notes: tuple[str, ...],
) -> ComparisonReport:
    matrix = judged.matrix
    cell = matrix.headline.cell
    named = None if cell is None else judged.compared[cell[0]][cell[1]]
    unconfirmed = named is not None and named.unconfirmed
    return ComparisonReport(
        benchmark=benchmark,
        sides=sides,
        verdict=matrix.verdict,
        summary=summarise_comparison(matrix.headline, sides, named),
        counts={str(verdict): number for verdict, number in matrix.headline.counts.items()},
        cases=cases,
        notes=notes,
        mismatches=judged.mismatches.all,
        paired=all(case.paired for case in cases),
        tests=sum(q is not None for q in matrix.q_values.values()),
        changed=matrix.changed,
        survived=matrix.survived,
        unconfirmed=unconfirmed,
        sensitivity=judged.sensitivity,
    )


def _select(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[SharedRun],
    run: Run | None,
    specs: SideSpecs,
    *,
    all_metrics: bool,
) -> Selection:
    """Return the cases with all metrics, or at least with those that decide."""
    flagged = load_flagged_trials(runs)
    primary = {
        key for spec in specs for key in (spec.primary_metrics if spec else _DEFAULT_PRIMARY)
    }
    metrics = None if all_metrics else primary
    selection = select_cases(benchmark, sides, runs, flagged, run=run, metrics=metrics)
    if metrics is not None:
        others = _load_other_metrics(selection, sides[1], specs, primary)
        if others:
            metrics = primary | others
            selection = select_cases(benchmark, sides, runs, flagged, run=run, metrics=metrics)
    if not selection.cases and not selection.excluded_cases:
        raise NotFoundError(_explain_nothing_to_compare(sides, run))
    return selection


def _load_other_metrics(
    selection: Selection, contender: Side, specs: SideSpecs, primary: Collection[str]
) -> set[str]:
    """Return the metrics of the contender's cases that have none of their primary metrics."""
    names = selection.names.cases
    usual = {
        group.place.case
        for case in selection.cases
        if case.metrics.keys() & set(_list_primary(case, specs, names))
        for group in case.contender
    }
    others = names.keys() - usual
    if not others:
        return set()
    points = Point.objects.filter(commit=contender.commit, series__case__in=others)
    measured: dict[int, set[str]] = defaultdict(set)
    rows = points.order_by().values_list("series__case", "series__metric__key").distinct()
    for case, key in rows:
        measured[case].add(key)
    unusual = (
        keys
        for case, keys in measured.items()
        if not keys & set(_list_case_primary(specs[1], names[case]))
    )
    return set().union(*unusual) - set(primary)


def _load_specs(
    benchmark: Benchmark, sides: tuple[Side, Side], runs: Sequence[SharedRun]
) -> SideSpecs:
    """Return the definitions that judge the sides; None without a definition.

    It is the requested one, else the newest that measured both sides, else the newest.
    """
    before, after = (_load_spec(benchmark, side, runs) for side in sides)
    return before, after


def _load_spec(benchmark: Benchmark, side: Side, runs: Sequence[SharedRun]) -> StoredSpec | None:
    if side.definition is not None:
        return load_stored_spec(side.definition.pk, side.definition.digest)
    if runs:
        return load_stored_spec(runs[0].definition, runs[0].digest)
    newest = benchmark.definitions.order_by("-version").values_list("pk", "digest").first()
    return None if newest is None else load_stored_spec(*newest)


def _list_primary(
    case: PairedCase, specs: SideSpecs, names: Mapping[int, CaseName]
) -> Sequence[str]:
    """Return the primary metrics of a case; of two different cases, those of both."""
    before, after = (
        _list_case_primary(spec, names[side[0].place.case])
        for spec, side in zip(specs, (case.baseline, case.contender), strict=True)
    )
    return [key for key in before if key in after] or before


def _list_case_primary(spec: StoredSpec | None, case: CaseName) -> Sequence[str]:
    return spec.list_case_metrics(case.parameters) if spec else _DEFAULT_PRIMARY


def _find_open_loops(selection: Selection, spec: StoredSpec | None) -> frozenset[int]:
    if spec is None:
        return frozenset()
    shown = {group.place.case for case in selection.cases for group in case.baseline}
    shown.update(place.case for place in selection.excluded_cases)
    names = selection.names.cases
    return frozenset(pk for pk in shown if spec.get_loop(names[pk].parameters) == "open")


def _list_places(selection: Selection) -> tuple[set[int], set[UUID]]:
    """Return the cases and the hosts of the baseline, which are those of both sides in blocks."""
    places = {group.place for case in selection.cases for group in case.baseline}
    return {place.case for place in places}, {UUID(place.host) for place in places}


def _compare_cases(
    selection: Selection,
    mismatches: Mismatches,
    build_noise: Mapping[BuildNoiseKey, BuildNoise],
    wanted: Mapping[str, Collection[str]],
) -> dict[str, dict[str, Comparison]]:
    """Compare the wanted metrics of cases that may be judged, in the order of the registry."""
    infos = _list_judged_metrics(selection.cases)
    compared: dict[str, dict[str, Comparison]] = {}
    paired: list[tuple[str, str, ComparisonInput]] = []
    for index, keys in wanted.items():
        case, compared[index] = selection.cases[int(index)], {}
        for info in infos:
            if info.key not in keys:
                continue
            withheld = int(index) in mismatches.withheld and info.key.startswith("latency.")
            if withheld or min(chain(*case.metrics[info.key]), default=0.0) < 0:
                continue
            if not case.paired:
                unpaired = _compare_unpaired(case, info, selection.block_runs)
                compared[index][info.key] = unpaired
                continue
            request = replace(
                _build_input(case, info.key, info),
                builds=case.builds[info.key],
                build_noise=build_noise.get(_build_noise_key(case, info)),
            )
            paired.append((index, info.key, request))
    results = compare_many([request for *_, request in paired])
    for (index, key, _), result in zip(paired, results, strict=True):
        compared[index][key] = result
    return compared


def _build_input(case: PairedCase, key: str, rules: Metric | Comparison) -> ComparisonInput:
    """Return the values of a paired case; `rules` has the direction and the margin."""
    baseline, contender = case.metrics[key]
    return ComparisonInput(
        baseline=baseline,
        contender=contender,
        better=rules.better,
        margin=rules.margin,
        orders=case.orders[key],
    )


def _build_noise_key(case: PairedCase, info: Metric) -> BuildNoiseKey:
    group = case.baseline[0]
    return BuildNoiseKey(group.place.host, group.place.case, info.key, group.comparability.epoch)


def _compare_unpaired(case: PairedCase, info: Metric, block_runs: Mapping[int, UUID]) -> Comparison:
    """Compare the runs of both sides. Values whose run is not known count as one run."""
    sides = []
    values, blocks = case.metrics[info.key], case.value_blocks[info.key]
    for side_values, side_blocks in zip(values, blocks, strict=True):
        runs: dict[UUID | None, list[float]] = defaultdict(list)
        for value, block in zip(side_values, side_blocks, strict=True):
            runs[block_runs.get(block)].append(value)
        sides.append(list(runs.values()))
    before, after = sides
    return compare_unpaired(before, after, better=info.better, margin=info.margin)


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
