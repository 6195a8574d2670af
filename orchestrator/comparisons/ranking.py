"""Builds the cases of a report with their verdicts, and ranks them: regressions first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.comparisons.exclusions import Exclusions, SharedRun
from orchestrator.comparisons.mismatches import Mismatches
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.points import CaseOnHost, PointGroup
from orchestrator.comparisons.report import (
    CaseComparison,
    HostName,
    MetricComparison,
    Sensitivity,
)
from orchestrator.comparisons.selection import Selection
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.measurements.validity_issues import count_validity_issues
from orchestrator.runs.models import Trial
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import ALPHA, Comparison, Verdict
from orchestrator.stats.conclusion import CaseBlocks
from orchestrator.stats.multiple_testing import REPORT_ORDER, Cell, MatrixVerdict
from orchestrator.stats.needed_blocks import (
    DecisionRule,
    FurtherBlocks,
    NeededBlocks,
    estimate_needed_blocks,
    find_largest,
)
from orchestrator.stats.saturated_blocks import SaturatedEstimate
from orchestrator.stats.summary import summarise

#: The rank of a verdict: failures and changes first, then inconclusive cases.
ORDER: Mapping[str, int] = {verdict: rank for rank, verdict in enumerate(REPORT_ORDER)}
_WITHHELD = "closed and open loop: their latencies are not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCases:
    """`compared`: index of a case in the selection, as text → metric key → comparison.

    Claimed changes are adjusted for the selection (`selective_inference`). `matrix`: the verdicts,
    with those of failures and of excluded blocks. `others`: verdicts of the metrics that decide
    nothing. `blocks`: of all cases, also those without a block that counts.
    `spending`: the same index → the verdicts that were taken on the blocks of the case.
    `open_loops`: the cases of the baseline with an open loop. `sensitivity`: the verdicts without
    the blocks with a suspect trial; None if there are none.
    `with_saturated`: the change of a metric of a case over all its blocks, if a trial of some is
    saturated.
    """

    compared: Mapping[str, Mapping[str, Comparison]]
    matrix: MatrixVerdict
    others: MatrixVerdict
    blocks: Mapping[str, CaseBlocks]
    mismatches: Mismatches
    spending: Mapping[str, Spending]
    open_loops: frozenset[int]
    with_saturated: Mapping[Cell, SaturatedEstimate]
    sensitivity: Sensitivity | None = None


def rank_cases(
    selection: Selection, judged: JudgedCases, trial_s: Mapping[int, float]
) -> tuple[CaseComparison, ...]:
    """Return failures and regressions first, then improvements, inconclusive and unchanged cases.

    Among the inconclusive cases, those without data are the last.
    `trial_s`: case → expected seconds of a trial.
    """
    keys = {key for metrics in judged.compared.values() for key in metrics}
    infos = find_metrics(keys)
    needed = _estimate_needed_blocks(judged)
    cases = [
        _build_case(index, selection, judged, infos, trial_s, needed)
        for index in range(len(selection.cases))
    ]
    cases += [
        _build_excluded_case(str(index), place, exclusions, selection, judged)
        for index, (place, exclusions) in enumerate(
            selection.excluded_cases.items(), len(selection.cases)
        )
    ]
    return tuple(sorted(cases, key=_rank))


def _rank(case: CaseComparison) -> tuple[int, float, str]:
    order = ORDER[case.verdict]
    if order > ORDER[Verdict.IMPROVED]:
        return order, float(not case.has_data), case.case.label
    changes = (abs(m.change or 0) for m in case.metrics if m.verdict == case.verdict)
    return order, -max(changes, default=0.0), case.case.label


def _build_case(
    index: int,
    selection: Selection,
    judged: JudgedCases,
    infos: Sequence[Metric],
    trial_s: Mapping[int, float],
    needed: Mapping[Cell, NeededBlocks],
) -> CaseComparison:
    case, exclusions, names = selection.cases[index], selection.exclusions[index], selection.names
    metrics = _build_metrics(index, judged, infos, needed)
    if index in judged.mismatches.withheld:
        metrics += _withhold_metrics(case)
    before, after = case.baseline[0].place, case.contender[0].place
    counts = exclusions if case.paired else _count_exclusions(case)
    verdict, blocks = judged.matrix.cases[str(index)], judged.blocks[str(index)]
    missing = (
        _count_missing_blocks(metrics, counts.excluded) if verdict is Verdict.INCONCLUSIVE else None
    )
    return CaseComparison(
        case=names.cases[before.case],
        contender_case=names.cases[after.case],
        host=_build_host_name(case.baseline, selection),
        contender_host=_build_host_name(case.contender, selection),
        verdict=verdict,
        metrics=metrics,
        paired=case.paired,
        excluded_blocks=counts.excluded,
        suspect_blocks=counts.suspect,
        verdict_without_suspect=_find_other_verdict(str(index), exclusions, judged),
        validity_issues=count_validity_issues(exclusions.reasons) if exclusions.reasons else (),
        open_loop=before.case in judged.open_loops,
        outcomes=blocks.outcomes,
        withheld=blocks.find_obstacle(),
        source=case,
        missing=missing,
        missing_s=_estimate_seconds(missing, trial_s.get(before.case)),
    )


def _build_excluded_case(
    index: str,
    place: CaseOnHost,
    exclusions: Exclusions,
    selection: Selection,
    judged: JudgedCases,
) -> CaseComparison:
    case, host = selection.names.cases[place.case], selection.names.hosts[place.host]
    return CaseComparison(
        case=case,
        contender_case=case,
        host=host,
        contender_host=host,
        verdict=judged.matrix.cases[index],
        metrics=(),
        paired=True,
        excluded_blocks=exclusions.excluded,
        suspect_blocks=0,
        validity_issues=count_validity_issues(exclusions.reasons),
        open_loop=place.case in judged.open_loops,
        outcomes=exclusions.outcomes,
        withheld=judged.blocks[index].find_obstacle(),
    )


def _find_other_verdict(index: str, exclusions: Exclusions, judged: JudgedCases) -> Verdict | None:
    """Return the verdict without the suspect blocks of the case; None if it has none."""
    if judged.sensitivity is None or not exclusions.suspect_blocks:
        return None
    return judged.sensitivity.cases[index]


def _build_host_name(side: Sequence[PointGroup], selection: Selection) -> HostName:
    hosts = [selection.names.hosts[group.place.host] for group in side]
    if len(hosts) == 1:
        return hosts[0]
    name = ", ".join(sorted(dict.fromkeys(host.name for host in hosts)))
    return HostName(pk=hosts[0].pk, name=name, profile=hosts[0].profile)


def _count_exclusions(case: PairedCase) -> Exclusions:
    """Return the counts of the trials of sides that share no block."""
    groups = (*case.baseline, *case.contender)
    return Exclusions(
        excluded=case.invalid_trials,
        suspect=sum(group.suspect for group in groups),
    )


def _build_metrics(
    index: int,
    judged: JudgedCases,
    infos: Sequence[Metric],
    needed: Mapping[Cell, NeededBlocks],
) -> tuple[MetricComparison, ...]:
    """Return the metrics, primary ones first."""
    compared = judged.compared[str(index)]
    metrics = [
        _build_metric(info, compared[info.key], judged, (str(index), info.key), needed)
        for info in infos
        if info.key in compared
    ]
    metrics.sort(key=lambda metric: not metric.primary)
    return tuple(metrics)


def _build_metric(
    info: Metric,
    comparison: Comparison,
    judged: JudgedCases,
    cell: Cell,
    needed: Mapping[Cell, NeededBlocks],
) -> MetricComparison:
    primary = cell in judged.matrix.cells
    family = judged.matrix if primary else judged.others
    return MetricComparison(
        info=info,
        result=comparison,
        primary=primary,
        verdict=family.cells[cell],
        q_value=family.q_values[cell],
        needed=needed.get(cell),
        with_saturated=judged.with_saturated.get(cell),
    )


def _withhold_metrics(case: PairedCase) -> tuple[MetricComparison, ...]:
    """The latencies of a closed and of an open loop: values of both sides, without a verdict."""
    infos = find_metrics([key for key in case.metrics if key.startswith("latency.")])
    return tuple(
        MetricComparison(
            info=info,
            result=_withhold_comparison(info, *case.metrics[info.key]),
            primary=False,
            verdict=Verdict.INCONCLUSIVE,
            q_value=None,
        )
        for info in infos
        if not info.informational
    )


def _withhold_comparison(
    info: Metric, before: Sequence[float], after: Sequence[float]
) -> Comparison:
    return Comparison(
        verdict=Verdict.INCONCLUSIVE,
        reasons=(_WITHHELD,),
        better=info.better,
        margin=info.margin,
        confidence=0.95,
        blocks=min(len(before), len(after)),
        baseline=_compute_mean(before),
        contender=_compute_mean(after),
    )


def _compute_mean(values: Sequence[float]) -> float | None:
    summary = summarise(values)
    return summary.mean if summary else None


def _estimate_needed_blocks(judged: JudgedCases) -> dict[Cell, NeededBlocks]:
    """Return the total blocks that would probably decide each inconclusive primary metric.

    More blocks like these do not help a case whose blocks are excluded too often.
    """
    helped = {case for case, blocks in judged.blocks.items() if blocks.find_obstacle() is None}
    rules: dict[DecisionRule, list[Cell]] = defaultdict(list)
    for cell, verdict in judged.matrix.cells.items():
        if verdict is Verdict.INCONCLUSIVE and cell[0] in helped:
            rules[_build_next_rule(judged, cell[0])].append(cell)
    needed: dict[Cell, NeededBlocks] = {}
    for rule, cells in rules.items():
        open_ = [judged.compared[case][metric] for case, metric in cells]
        estimates = zip(cells, estimate_needed_blocks(open_, rule), strict=True)
        needed |= {cell: blocks for cell, blocks in estimates if blocks is not None}
    return needed


def _build_next_rule(judged: JudgedCases, case: str) -> DecisionRule:
    """Return the rule of the verdict after one more run, with a fixed number of rounds."""
    following = judged.spending[case].after_another_run()
    return DecisionRule(
        claim_alpha=min(ALPHA, judged.matrix.claim_threshold / following.penalty),
        equivalence_alpha=following.equivalence_alpha,
    )


def _count_missing_blocks(
    metrics: Sequence[MetricComparison], excluded: int
) -> FurtherBlocks | None:
    """Return the further blocks that would probably decide the inconclusive primary metrics.

    The share of blocks that have the metric, and are not excluded, is assumed to stay the same.
    """
    measured = excluded + max((metric.blocks for metric in metrics if metric.primary), default=0)
    return find_largest(
        metric.needed.count_further(metric.blocks, measured - metric.blocks)
        for metric in metrics
        if metric.needed is not None
    )


def load_trial_times(judged: JudgedCases, runs: Sequence[SharedRun]) -> Mapping[int, float]:
    """Case → expected seconds of a trial in the newest run; read only if a case is inconclusive."""
    if not runs or Verdict.INCONCLUSIVE not in judged.matrix.cells.values():
        return {}
    trials = Trial.objects.filter(variant__in=runs[0].variants, round=1).order_by()
    return dict(trials.values_list("case_id", "expected_s"))


def _estimate_seconds(missing: FurtherBlocks | None, trial_s: float | None) -> float | None:
    if missing is None or missing.in_reach is None or trial_s is None:
        return None
    return 2 * trial_s * missing.in_reach
