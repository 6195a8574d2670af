"""One cell of a pivot: the statistic of a case's counted trials, or why there is none. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.measurements.validity_issues import get_issue_title, parse_code
from orchestrator.reports.pivot_model import Cell, Kind, Observation, Sample
from orchestrator.reports.report_spec import Measure
from orchestrator.reports.spec_fields import parse_percentile
from orchestrator.reports.units import choose_unit, scale
from orchestrator.stats.contests import (
    ContestEntry,
    ContestTrial,
    change_in_contest,
    difference_in_contest,
)
from orchestrator.stats.estimates import (
    Estimate,
    MeanEstimate,
    Runs,
    change_against,
    estimate,
    estimate_difference,
    estimate_merged,
)

#: The statistics that stand for the trials of a case, so that their logs may be compared.
_CENTRES = ("mean", "median", "merged")
#: The maximum length of a reason in a cell.
MAX_WHY = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CellValue:
    """A cell with its values in the metric's own unit, for further computation.

    `runs`: the values of the trials of each run. `is_mean`: the value is the mean of the runs.
    """

    cell: Cell
    value: float | None = None
    runs: Runs = ()
    is_mean: bool = False


def read_cell(observations: Sequence[Observation], measure: Measure) -> CellValue:
    """Return the cell of a metric for these observations, normally a single one."""
    if not observations:
        return _build_empty("absent", "not in the matrix")
    if len(observations) > 1:
        return _build_empty("ambiguous", f"{len(observations)} cases in one cell: add a dimension")
    only = observations[0]
    return _read_reference(only, measure) if only.is_published else _read_measured(only, measure)


def find_shared(observations: Sequence[Observation], measure: Measure) -> CellValue:
    """Return the value that all observations with a value share; it is not a mean."""
    cells = [read_cell([each], measure) for each in observations]
    non_empty = [each for each in cells if each.value is not None]
    if not non_empty:
        return cells[0] if cells else read_cell([], measure)
    values = {each.value for each in non_empty}
    if len(values) > 1:
        return _build_empty("ambiguous", f"{len(values)} cases differ: add a dimension")
    return non_empty[0]


def compute_relative(
    current: CellValue,
    base: CellValue | None,
    decimals: int | None,
    *,
    missing: str = "there is no baseline case",
) -> CellValue:
    """Return the change of a cell against another, in per cent. `missing`: the reason without
    one."""
    if current.value is None:
        return current
    if current.cell.baseline:
        exact = MeanEstimate(mean=0.0, error=0.0, degrees=1)
        same = Estimate(value=0.0, low=None, high=None, n=current.cell.trials, tested=exact)
        return CellValue(cell=_fill_cell(current.cell, same, "%", 100.0, decimals))
    if base is None or base.value is None:
        reason = base.cell.reason if base is not None else missing
        return _build_empty("untold", f"no baseline: {reason}")
    are_means = current.is_mean and base.is_mean
    unpaired = change_against(
        current.value, current.runs, base.value, base.runs, are_means=are_means
    )
    if unpaired is None:
        return _build_empty("untold", "the baseline is zero")
    change = change_in_contest(
        current.cell.entry, base.cell.entry, unpaired.value, are_means=are_means
    )
    return CellValue(
        cell=_fill_cell(
            current.cell, change or unpaired, "%", 100.0, 1 if decimals is None else decimals
        )
    )


def compute_difference(
    one: CellValue, other: CellValue, measure: Measure, decimals: int | None
) -> CellValue:
    """Subtract one cell from another, in the unit of the first."""
    if one.value is None or other.value is None:
        missing = one if one.value is None else other
        return CellValue(cell=_build_reason_cell(missing.cell.kind, missing.cell.reason))
    unit, are_means = _choose_unit(measure), one.is_mean and other.is_mean
    difference = difference_in_contest(
        one.cell.entry, other.cell.entry, (one.value, other.value), are_means=are_means
    ) or estimate_difference(one.value, one.runs, other.value, other.runs, are_means=are_means)
    digits = one.cell.decimals if decimals is None else decimals
    cell = _fill_cell(one.cell, difference, unit, scale(measure.info.unit, unit), digits)
    # The blocks are those of a value, not of the difference.
    return CellValue(cell=replace(cell, entry=None))


def _choose_unit(measure: Measure) -> str:
    return choose_unit(measure.info.unit) if measure.unit is None else measure.unit


def _fill_cell(
    cell: Cell, summary: Estimate, unit: str, factor: float, decimals: int | None
) -> Cell:
    return Cell(
        kind="value",
        value=summary.value * factor,
        low=None if summary.low is None else summary.low * factor,
        high=None if summary.high is None else summary.high * factor,
        unit=unit,
        decimals=decimals,
        trials=cell.trials,
        runs=cell.runs,
        suspect=cell.suspect,
        excluded=cell.excluded,
        excluded_suspects=cell.excluded_suspects,
        baseline=cell.baseline,
        published=cell.published,
        origin=cell.origin,
        tested=summary.tested,
        entry=cell.entry,
        paired=summary.paired,
    )


def _read_reference(seen: Observation, measure: Measure) -> CellValue:
    value = seen.published.get(measure.metric)
    if value is None:
        return _build_empty("absent", "not published")
    unit = _choose_unit(measure)
    summary = Estimate(value=value, low=None, high=None, n=0)
    blank = Cell(kind="value", published=True, baseline=seen.baseline)
    cell = _fill_cell(blank, summary, unit, scale(measure.info.unit, unit), measure.decimals)
    return CellValue(cell=cell, value=value)


def _read_measured(seen: Observation, measure: Measure) -> CellValue:
    counted = [each for each in seen.samples if each.counts]
    runs = _group_by_run(counted, measure.metric)
    summary = _estimate(seen, runs, measure)
    if summary is None:
        return CellValue(cell=_build_missing_cell(seen, counted, measure))
    unit = _choose_unit(measure)
    known = [each for each in counted if measure.metric in each.values] or counted
    blank = Cell(
        kind="value",
        trials=len(known),
        runs=len({each.run for each in known}),
        suspect=sum(each.validity == "suspect" for each in known),
        excluded=sum(_is_invalid(each) for each in seen.samples),
        excluded_suspects=sum(each.excluded for each in seen.samples),
        baseline=seen.baseline,
        origin=seen.origin,
        entry=_build_entry(seen, known, measure),
    )
    cell = _fill_cell(blank, summary, unit, scale(measure.info.unit, unit), measure.decimals)
    is_mean = measure.statistic == "mean"
    return CellValue(cell=cell, value=summary.value, runs=runs, is_mean=is_mean)


def _group_by_run(samples: Sequence[Sample], metric: str) -> Runs:
    """Return the values of each run; trials whose run is not known count as one run."""
    runs: dict[int, list[float]] = defaultdict(list)
    for each in samples:
        if metric in each.values:
            runs[each.run].append(each.values[metric])
    return list(runs.values())


def _build_entry(
    seen: Observation, samples: Sequence[Sample], measure: Measure
) -> ContestEntry | None:
    """Return the values by block for paired comparisons; None without a contest."""
    if seen.contest is None or measure.statistic not in _CENTRES:
        return None
    trials = {
        each.block: ContestTrial(each.values[measure.metric], each.place, each.build)
        for each in samples
        if each.block and measure.metric in each.values
    }
    interim = any(each.interim for each in samples)
    return ContestEntry(key=seen.contest, trials=trials, interim=interim)


def _estimate(seen: Observation, runs: Runs, measure: Measure) -> Estimate | None:
    if measure.statistic != "merged":
        return estimate(runs, measure.statistic)
    merged = seen.merged.get(measure.metric)
    return None if merged is None else estimate_merged(merged, runs)


def _build_missing_cell(seen: Observation, counted: Sequence[Sample], measure: Measure) -> Cell:
    if seen.unsupported and not counted:
        return _build_reason_cell("unsupported", seen.unsupported)
    if counted:
        few = parse_percentile(measure.metric) is not None
        return _build_reason_cell(
            "untold", "too few requests" if few else "the load tool does not report it"
        )
    invalid = [each for each in seen.samples if _is_invalid(each)]
    if invalid:
        return _build_reason_cell("invalid", _format_titles(invalid), excluded=len(invalid))
    return _build_unmeasured_cell(seen.samples)


def _build_unmeasured_cell(samples: Sequence[Sample]) -> Cell:
    for state in ("failed", "unsupported", "skipped"):
        messages = [_extract_first_line(each) for each in samples if each.state == state]
        if messages:
            kind: Kind = state
            return _build_reason_cell(kind, next(filter(None, messages), ""))
    if samples:
        return _build_reason_cell("pending", "not measured yet")
    return _build_reason_cell("unmeasured", "not measured")


def _extract_first_line(sample: Sample) -> str:
    """Return the first line of a trial's message, or else its reasons."""
    lines = sample.message.strip().splitlines()
    return lines[0] if lines else "; ".join(map(_get_title, sample.reasons))


def _format_titles(samples: Sequence[Sample]) -> str:
    """Return the reasons, most frequent first: "Too few of the offered requests; Swapping"."""
    counted = Counter(title for each in samples for title in set(map(_get_title, each.reasons)))
    return "; ".join(title for title, _ in counted.most_common(3))


def _get_title(reason: str) -> str:
    return get_issue_title(parse_code(reason))


def _is_invalid(sample: Sample) -> bool:
    return sample.state == "measured" and not (sample.counts or sample.excluded)


def _build_reason_cell(kind: Kind, reason: str, *, excluded: int = 0) -> Cell:
    short = reason if len(reason) <= MAX_WHY else f"{reason[: MAX_WHY - 1]}…"
    return Cell(kind=kind, reason=short, excluded=excluded)


def _build_empty(kind: Kind, reason: str) -> CellValue:
    return CellValue(cell=_build_reason_cell(kind, reason))
