"""The evidence of a compared case: its trials by block, its points and its latencies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Coalesce

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.comparisons.report import CaseComparison, ComparisonReport
from orchestrator.fleet.models import Host
from orchestrator.measurements.comparability import hash_block
from orchestrator.measurements.distributions import LatencyCurve, compute_curve
from orchestrator.measurements.merged_distributions import load_point_histograms, merge_points
from orchestrator.results.models import Histogram, HistogramKind, Series
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.quantile_change import QuantileChanges, compute_quantile_changes

#: A page shows at most this many blocks, the newest.
MOST_BLOCKS = 100
_ENDED = (TrialState.MEASURED, TrialState.FAILED)
#: Block → its distribution.
_Distributions = Mapping[int, Distribution]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTrial:
    """`tool`: name and version of the load tool, empty if unknown. `network`: the emulated one,
    empty without one."""

    id: UUID
    run: UUID
    round: int
    host: str
    at: datetime | None
    state: str
    validity: str
    reasons: Sequence[str]
    message: str
    tool: str
    version: int
    network: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceBlock:
    """The trials of both sides in one block; of one side if the sides share none.

    A block that does not `count` was excluded.
    """

    baseline: EvidenceTrial | None
    contender: EvidenceTrial | None
    counts: bool

    @property
    def sides(self) -> tuple[EvidenceTrial | None, EvidenceTrial | None]:
        return self.baseline, self.contender

    @property
    def any_trial(self) -> EvidenceTrial:
        trial = self.baseline or self.contender
        assert trial is not None
        return trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The newest blocks first; `more` older ones are not included.

    `points`: metric key → ids of the series of baseline and contender; None if a side has several
    hosts.
    """

    blocks: tuple[EvidenceBlock, ...]
    more: int
    points: Mapping[str, tuple[int | None, int | None]]

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the emulated networks of the shown trials."""
        trials = (trial for block in self.blocks for trial in block.sides if trial)
        return tuple(dict.fromkeys(trial.network for trial in trials if trial.network))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyDetail:
    """`curves` are of all compared trials of a side.

    `quantiles` is None if the sides share no block, or if the distributions of single trials were
    removed.
    """

    curves: tuple[LatencyCurve | None, LatencyCurve | None]
    quantiles: QuantileChanges | None


def load_evidence(report: ComparisonReport, case: CaseComparison) -> Evidence:
    """The evidence of one case of a report."""
    hosts = _list_hosts(case)
    counted = case.source.blocks if case.source else (frozenset[int](), frozenset[int]())
    versions = [side.definition.version if side.definition else None for side in report.sides]
    sides = [
        _load_trials(report.benchmark, commit, pk, on, version)
        for commit, pk, on, version in zip(
            (report.baseline, report.contender),
            (case.case.pk, case.contender_case.pk),
            hosts,
            versions,
            strict=True,
        )
    ]
    blocks = _build_blocks(sides[0], sides[1], counted, paired=case.paired)
    return Evidence(
        blocks=tuple(blocks[:MOST_BLOCKS]),
        more=max(0, len(blocks) - MOST_BLOCKS),
        points=_load_series(case, hosts),
    )


def _list_hosts(case: CaseComparison) -> tuple[list[UUID], list[UUID]]:
    if case.source is None:
        return [case.host.pk], [case.contender_host.pk]
    before, after = (
        list(dict.fromkeys(UUID(group.place.host) for group in side))
        for side in (case.source.baseline, case.source.contender)
    )
    return before, after


def _load_trials(
    benchmark: Benchmark, commit: Commit, case: int, hosts: Sequence[UUID], version: int | None
) -> dict[int, EvidenceTrial]:
    """Block → ended trial."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        case=case,
        state__in=_ENDED,
        job__run__definition__benchmark=benchmark,
    ).alias(on=Coalesce("host_id", "job__host_id"))
    rows = trials.filter(on__in=hosts).order_by()
    if version is not None:
        rows = rows.filter(job__run__definition__version=version)
    values = rows.values_list(
        "pk", "job_id", "job__run_id", "round", Coalesce("host__name", "job__host__name"),
        "started_at", "state", "validity", "reasons", "message", "provenance__tool",
        "job__run__definition__version", "provenance__network__title",
    )  # fmt: skip
    return {hash_block(job, number): _build_trial(pk, run, number, rest)
            for pk, job, run, number, *rest in values}  # fmt: skip


def _build_trial(pk: UUID, run: UUID, number: int, rest: Sequence[Any]) -> EvidenceTrial:
    host, at, state, validity, reasons, message, tool, version, network = rest
    program = tool if isinstance(tool, dict) else {}
    return EvidenceTrial(
        id=pk,
        run=run,
        round=number,
        host=host,
        at=at,
        state=state,
        validity=validity,
        reasons=reasons or (),
        message=message,
        tool=" ".join(str(program[key]) for key in ("name", "version") if program.get(key)),
        version=version,
        network=network or "",
    )


def _build_blocks(
    before: Mapping[int, EvidenceTrial],
    after: Mapping[int, EvidenceTrial],
    counted: tuple[frozenset[int], frozenset[int]],
    *,
    paired: bool,
) -> list[EvidenceBlock]:
    """Return the compared blocks, and those excluded by a failed or invalid trial."""
    blocks = []
    for number in dict.fromkeys([*before, *after]):
        first, second = before.get(number), after.get(number)
        counts = number in counted[0] or number in counted[1]
        complete = not paired or (first and second)
        if counts or (complete and _is_excluded(filter(None, (first, second)))):
            blocks.append(EvidenceBlock(baseline=first, contender=second, counts=counts))
    return sorted(blocks, key=_sort_key, reverse=True)


def _is_excluded(trials: Iterable[EvidenceTrial]) -> bool:
    return any(
        trial.state == TrialState.FAILED or trial.validity == Validity.INVALID for trial in trials
    )


def _sort_key(block: EvidenceBlock) -> tuple[float, int]:
    at = block.any_trial.at
    return (at.timestamp() if at else 0.0), block.any_trial.round


def _load_series(
    case: CaseComparison, hosts: tuple[Sequence[UUID], Sequence[UUID]]
) -> dict[str, tuple[int | None, int | None]]:
    """Metric key → the ids of the series of both sides."""
    places = [
        (pk, on[0]) if len(on) == 1 else None
        for pk, on in zip((case.case.pk, case.contender_case.pk), hosts, strict=True)
    ]
    single = [place for place in places if place is not None]
    rows = Series.objects.filter(
        case__in=[pk for pk, _ in single], host__in=[host for _, host in single]
    ).values_list("case_id", "host_id", "metric__key", "pk")
    series = {((pk, host), key): number for pk, host, key, number in rows}
    return {
        metric.key: (
            series.get((places[0], metric.key)) if places[0] else None,
            series.get((places[1], metric.key)) if places[1] else None,
        )
        for metric in case.metrics
    }


def load_latency_detail(report: ComparisonReport, case: CaseComparison) -> LatencyDetail:
    """The latency curves of one case of a report, and the change of each percentile."""
    blocks = case.source.blocks if case.source else (frozenset[int](), frozenset[int]())
    first = _load_distributions(report.baseline, case.case.pk, blocks[0])
    second = _load_distributions(report.contender, case.contender_case.pk, blocks[1])
    shared = [block for block in sorted(first) if block in second] if case.paired else []
    before = _merge(report.benchmark, report.baseline, case.case.pk, case.host.pk, first)
    after = _merge(
        report.benchmark,
        report.contender,
        case.contender_case.pk,
        case.contender_host.pk,
        second,
    )
    return LatencyDetail(
        curves=(compute_curve(before), compute_curve(after)),
        quantiles=_change_quantiles([(first[block], second[block]) for block in shared]),
    )


def _change_quantiles(blocks: list[tuple[Distribution, Distribution]]) -> QuantileChanges | None:
    changes = compute_quantile_changes(blocks) if blocks else None
    return changes if changes is not None and changes.points else None


def _load_distributions(commit: Commit, case: int, blocks: frozenset[int]) -> _Distributions:
    """The distributions of the trials of a commit in these blocks."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        case=case,
        state=TrialState.MEASURED,
        validity__in=[Validity.VALID, Validity.SUSPECT],
    ).order_by()
    blocks_by_trial = {
        trial: hash_block(job, number)
        for trial, job, number in trials.values_list("pk", "job_id", "round")
    }
    chosen = {trial: block for trial, block in blocks_by_trial.items() if block in blocks}
    rows = Histogram.objects.filter(trial__in=list(chosen), kind=HistogramKind.OK)
    return {
        chosen[trial]: Distribution.decode(bytes(encoded))
        for trial, encoded in rows.values_list("trial_id", "encoded")
    }


def _merge(
    benchmark: Benchmark, commit: Commit, case: int, host: UUID, trials: _Distributions
) -> Distribution | None:
    """The merged distribution of the trials; if theirs were removed, that of the commit."""
    if trials:
        return Distribution.merged(trials.values())
    points = load_point_histograms(
        benchmark, Case.objects.get(pk=case), commit, Host.objects.get(pk=host)
    )
    return merge_points(points, []).distribution if points else None
