"""The latency of one compared case: both distributions, and how they differ at each percentile."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.comparisons.compared import CaseComparison, ComparisonReport
from orchestrator.fleet.models import Host
from orchestrator.measurements.comparability import block_of
from orchestrator.measurements.distributions import LatencyCurve, curve_of
from orchestrator.measurements.merged_distributions import merged_points, points_of
from orchestrator.results.models import Histogram, HistogramKind
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.quantile_change import QuantileChanges, quantile_changes

#: Block → its distribution.
Distributions = Mapping[int, Distribution]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDetail:
    """`curves` are of all compared trials of a side. `quantiles` are None where the sides share
    no block, or the distributions of single trials are not kept any more."""

    curves: tuple[LatencyCurve | None, LatencyCurve | None]
    quantiles: QuantileChanges | None


def detail_of(report: ComparisonReport, case: CaseComparison) -> CaseDetail:
    """Of one case of a report."""
    blocks = case.cell.blocks if case.cell else (frozenset[int](), frozenset[int]())
    first = _distributions(report.baseline, case.case.pk, blocks[0])
    second = _distributions(report.contender, case.contender_case.pk, blocks[1])
    shared = [block for block in sorted(first) if block in second] if case.paired else []
    before = _merged(report.benchmark, report.baseline, case.case.pk, case.host.pk, first)
    after = _merged(
        report.benchmark,
        report.contender,
        case.contender_case.pk,
        case.contender_host.pk,
        second,
    )
    return CaseDetail(
        curves=(curve_of(before), curve_of(after)),
        quantiles=_quantiles([(first[block], second[block]) for block in shared]),
    )


def _quantiles(blocks: list[tuple[Distribution, Distribution]]) -> QuantileChanges | None:
    found = quantile_changes(blocks) if blocks else None
    return found if found is not None and found.points else None


def _distributions(commit: Commit, case: int, blocks: frozenset[int]) -> Distributions:
    """Of the trials of a commit that were measured in these blocks."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        case=case,
        state=TrialState.MEASURED,
        validity__in=[Validity.VALID, Validity.SUSPECT],
    ).order_by()
    named = {
        trial: block_of(job, number)
        for trial, job, number in trials.values_list("pk", "job_id", "round")
    }
    wanted = {trial: block for trial, block in named.items() if block in blocks}
    rows = Histogram.objects.filter(trial__in=list(wanted), kind=HistogramKind.OK)
    return {
        wanted[trial]: Distribution.decode(bytes(encoded))
        for trial, encoded in rows.values_list("trial_id", "encoded")
    }


def _merged(
    benchmark: Benchmark, commit: Commit, case: int, host: UUID, trials: Distributions
) -> Distribution | None:
    """Of the trials; where theirs are not kept any more, of the commit's."""
    if trials:
        return Distribution.merged(trials.values())
    points = points_of(benchmark, Case.objects.get(pk=case), commit, Host.objects.get(pk=host))
    return merged_points(points, []).distribution if points else None
