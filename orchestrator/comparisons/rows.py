"""The rows of a comparison: cells with their verdicts, those that matter first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.cells import Cells
from orchestrator.comparisons.compared import CaseComparison, HostName, MetricComparison
from orchestrator.comparisons.exclusions import Exclusions, RunOfBoth
from orchestrator.comparisons.mismatches import Mismatches
from orchestrator.comparisons.points import Measured, Place
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.measurements.validity_issues import count_validity_issues
from orchestrator.runs.models import Trial
from orchestrator.stats.comparison import Comparison, Outcome, Verdict
from orchestrator.stats.matrix import MatrixVerdict
from orchestrator.stats.summary import summarise

#: Changes first, then what is open.
ORDER: Mapping[str, int] = {
    Verdict.REGRESSED: 0,
    Verdict.IMPROVED: 1,
    Verdict.INCONCLUSIVE: 2,
    Verdict.TRIVIAL: 3,
    Verdict.EQUIVALENT: 4,
}
_WITHHELD = "closed and open loop: their latencies are never judged against each other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`compared`: place of a cell, as text → metric → comparison."""

    compared: Mapping[str, Mapping[str, Outcome]]
    matrix: MatrixVerdict
    mismatches: Mismatches
    open_loop: bool


def rows_of(cells: Cells, judged: Judged, runs: Sequence[RunOfBoth]) -> tuple[CaseComparison, ...]:
    """Regressions first, then improvements, what is open, and what did not change."""
    keys = {key for metrics in judged.compared.values() for key in metrics}
    infos = metrics_of(keys)
    trial_s = _trial_times(judged, runs)
    rows = [_row(place, cells, judged, infos, trial_s) for place in range(len(cells.cells))]
    rows += [
        _void_row(place, exclusions, cells, judged) for place, exclusions in cells.void.items()
    ]
    return tuple(sorted(rows, key=_place_in_order))


def _place_in_order(row: CaseComparison) -> tuple[int, float, str]:
    order = ORDER[row.verdict]
    if order > ORDER[Verdict.IMPROVED]:
        return order, 0.0, row.case.label
    largest = max(
        (abs(each.change or 0) for each in row.metrics if each.verdict == row.verdict), default=0.0
    )
    return order, -largest, row.case.label


def _row(
    place: int,
    cells: Cells,
    judged: Judged,
    infos: Sequence[Metric],
    trial_s: Mapping[int, float],
) -> CaseComparison:
    cell, exclusions, names = cells.cells[place], cells.exclusions[place], cells.names
    metrics = _metrics(place, judged, infos)
    if place in judged.mismatches.withheld:
        metrics += _withheld(cell)
    before, after = cell.baseline[0].place, cell.contender[0].place
    missing = _missing(metrics)
    paired_or_sum = exclusions if cell.paired else _of_points(cell)
    return CaseComparison(
        case=names.cases[before.case],
        contender_case=names.cases[after.case],
        host=_host(cell.baseline, cells),
        contender_host=_host(cell.contender, cells),
        verdict=judged.matrix.cases[str(place)],
        metrics=metrics,
        paired=cell.paired,
        excluded_blocks=paired_or_sum.excluded,
        suspect_blocks=paired_or_sum.suspect,
        validity_issues=count_validity_issues(exclusions.reasons) if exclusions.reasons else (),
        open_loop=judged.open_loop,
        cell=cell,
        missing_blocks=missing,
        missing_s=_seconds(missing, trial_s.get(before.case)),
    )


def _void_row(place: Place, exclusions: Exclusions, cells: Cells, judged: Judged) -> CaseComparison:
    names = cells.names
    host = names.hosts[place.host]
    return CaseComparison(
        case=names.cases[place.case],
        contender_case=names.cases[place.case],
        host=host,
        contender_host=host,
        verdict=Verdict.INCONCLUSIVE,
        metrics=(),
        paired=True,
        excluded_blocks=exclusions.excluded,
        suspect_blocks=0,
        validity_issues=count_validity_issues(exclusions.reasons),
        open_loop=judged.open_loop,
    )


def _host(side: Sequence[Measured], cells: Cells) -> HostName:
    if len(side) == 1:
        return cells.names.hosts[side[0].place.host]
    hosts = [cells.names.hosts[each.place.host] for each in side]
    name = ", ".join(sorted(dict.fromkeys(each.name for each in hosts)))
    return HostName(pk=hosts[0].pk, name=name, profile=hosts[0].profile)


def _of_points(cell: Cell) -> Exclusions:
    """Of sides that share no block: their trials."""
    both = (*cell.baseline, *cell.contender)
    return Exclusions(
        excluded=sum(each.invalid for each in both), suspect=sum(each.suspect for each in both)
    )


def _metrics(place: int, judged: Judged, infos: Sequence[Metric]) -> tuple[MetricComparison, ...]:
    """Those that decide first."""
    name = str(place)
    compared = judged.compared[name]
    rows = [
        _metric(info, compared[info.key], judged, (name, info.key))
        for info in infos
        if info.key in compared
    ]
    rows.sort(key=lambda row: not row.primary)
    return tuple(rows)


def _metric(info: Metric, each: Outcome, judged: Judged, cell: tuple[str, str]) -> MetricComparison:
    verdict = judged.matrix.cells.get(cell)
    return MetricComparison(
        info=info,
        found=each,
        primary=verdict is not None,
        verdict=verdict or each.verdict,
        q_value=judged.matrix.q_values.get(cell),
    )


def _withheld(cell: Cell) -> tuple[MetricComparison, ...]:
    """The latencies of a closed and of an open loop: both are shown, none is judged."""
    infos = metrics_of([key for key in cell.metrics if key.startswith("latency.")])
    return tuple(
        MetricComparison(
            info=info,
            found=_not_judged(info, *cell.metrics[info.key]),
            primary=False,
            verdict=Verdict.INCONCLUSIVE,
            q_value=None,
        )
        for info in infos
        if not info.informational
    )


def _not_judged(info: Metric, before: Sequence[float], after: Sequence[float]) -> Comparison:
    return Comparison(
        verdict=Verdict.INCONCLUSIVE,
        reasons=(_WITHHELD,),
        better=info.better,
        margin=info.margin,
        confidence=0.95,
        blocks=min(len(before), len(after)),
        baseline=_mean(before),
        contender=_mean(after),
    )


def _mean(values: Sequence[float]) -> float | None:
    summary = summarise(values)
    return summary.mean if summary else None


def _missing(metrics: Sequence[MetricComparison]) -> int | None:
    """How many more blocks the primary metrics need that are open."""
    wanted = [
        each.needed_blocks - each.blocks
        for each in metrics
        if each.primary and each.verdict == Verdict.INCONCLUSIVE and each.needed_blocks is not None
    ]
    return max((each for each in wanted if each > 0), default=None)


def _trial_times(judged: Judged, runs: Sequence[RunOfBoth]) -> Mapping[int, float]:
    """Case → seconds of a trial, as the newest run expected them; not asked if nothing is open."""
    if not runs or Verdict.INCONCLUSIVE not in judged.matrix.cells.values():
        return {}
    trials = Trial.objects.filter(variant__in=runs[0].variants, round=1).order_by()
    return dict(trials.values_list("case_id", "expected_s"))


def _seconds(blocks: int | None, trial_s: float | None) -> float | None:
    return None if blocks is None or trial_s is None else 2 * trial_s * blocks
