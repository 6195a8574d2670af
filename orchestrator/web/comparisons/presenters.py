"""A comparison for its page: one row per case, and the details of one case."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.urls import reverse

from cli.pitwall.units import (
    format_claim,
    format_interval,
    format_p_value,
    format_percent,
    format_value,
)
from orchestrator.benchmarks.choice import MAX_LENGTH
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.comparisons.evidence import (
    Evidence,
    LatencyDetail,
    load_evidence,
    load_latency_detail,
)
from orchestrator.comparisons.reasons import describe_failures, describe_withheld
from orchestrator.comparisons.report import CaseComparison, ComparisonReport, MetricComparison
from orchestrator.web.comparisons.charts import (
    BAR_WIDTH,
    IntervalBar,
    build_interval_bar,
    build_latency_chart,
    build_latency_rows,
    build_quantile_chart,
    compute_axis_limit,
)
from orchestrator.web.templatetags.pitwall import VERDICT_SYMBOLS

#: With more cases, an address does not name them one by one.
_MOST_NAMED = 12
#: Bars of rows are drawn in units of a change divided by this number.
_UNITS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A primary metric. The bars of all columns share one axis, in units of 1/10,000 of a change.

    It extends from -`half_width` to +`half_width`, with `margin_path` in its middle.
    """

    key: str
    title: str
    better: str
    reach_shown: str
    half_width: int
    margin_path: str

    @property
    def view_box(self) -> str:
        return f"{-self.half_width} 0 {2 * self.half_width} 12"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCell:
    """The change of a metric with its interval: as text, and as the paths of its bar.

    `change` is the measured one, and the likely one if it is another. `values` are those of
    baseline and contender. Without an interval, the bar is only a point.
    """

    change: str
    values: str
    interval: str = ""
    verdict: str = ""
    title: str = ""
    range_path: str = ""
    point_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """A row of the table; `host` is empty if all rows have the same one.

    A cell is None if its metric does not decide the case, or was not measured on both sides.
    """

    url: str
    label: str
    host: str
    verdict: str
    symbol: str
    remark: str
    cells: tuple[tuple[Column, ChangeCell | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """`points` are the URLs of the evidence of both numbers; empty if there is none."""

    metric: MetricComparison
    bar: IntervalBar | None
    points: tuple[str, str]

    @property
    def needed(self) -> str:
        """Return how many more blocks may decide the metric; empty if unknown."""
        further = self.metric.further
        if further is None:
            return ""
        may = "may stay open; " if further.in_reach is None else ""
        return f"{may}needs about {further.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """The details of one case. `failures`: how often each side failed. `withheld`: why the values
    give no verdict, or prove no equivalence."""

    comparison: CaseComparison
    failures: tuple[str, ...]
    withheld: str
    primary: tuple[MetricRow, ...]
    others: tuple[MetricRow, ...]
    primary_reach: str
    others_reach: str
    latency_id: str
    quantiles_id: str
    chart: dict[str, Any] | None
    latency_rows: tuple[tuple[str, float | None, float | None], ...]
    quantiles: dict[str, Any] | None
    detail: LatencyDetail
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreBlocks:
    """The blocks that would probably decide the open cases, with the query of a run's form.

    `cases`: those that these blocks can decide. `out_of_reach`: those that `most_blocks`, which is
    what one run has, would probably not decide.
    """

    most_blocks: ClassVar[int] = MAX_ROUNDS

    blocks: int
    cases: int
    out_of_reach: int
    seconds: float | None
    query: str


def build_columns(report: ComparisonReport) -> list[Column]:
    """Return the metrics that decide."""
    same: dict[str, list[MetricComparison]] = defaultdict(list)
    for case in report.cases:
        for metric in case.metrics:
            if metric.primary:
                same[metric.info.key].append(metric)
    reach = compute_axis_limit([metric for metrics in same.values() for metric in metrics])
    return [_build_column(metrics[0], reach) for metrics in same.values()]


def build_case_rows(
    cases: Sequence[CaseComparison],
    columns: Sequence[Column],
    query: Mapping[str, str],
    *,
    names_host: bool,
) -> list[CaseRow]:
    """Return the rows of the table.

    `query` is that of the page; a row's link adds its case to it.
    """
    base = urlencode(query)
    return [_build_case_row(case, columns, base, names_host=names_host) for case in cases]


def build_case_view(
    report: ComparisonReport, case: CaseComparison, names: tuple[str, str]
) -> CaseView:
    """Return the details of a case.

    `names` are the names of the two sides in the charts' legends.
    """
    reaches = {
        primary: compute_axis_limit([each for each in case.metrics if each.primary == primary])
        for primary in (True, False)
    }
    detail, evidence = load_latency_detail(report, case), load_evidence(report, case)
    rows = [
        MetricRow(
            metric=metric,
            bar=build_interval_bar(metric, reaches[metric.primary]),
            points=_build_point_urls(report, evidence, metric.key),
        )
        for metric in case.metrics
    ]
    return CaseView(
        comparison=case,
        failures=describe_failures(case),
        withheld=describe_withheld(case),
        primary=tuple(row for row in rows if row.metric.primary),
        others=tuple(row for row in rows if not row.metric.primary),
        primary_reach=_format_half_width(reaches[True]),
        others_reach=_format_half_width(reaches[False]),
        latency_id=f"latency-{case.case.key}-{case.host.pk.hex}",
        quantiles_id=f"quantiles-{case.case.key}-{case.host.pk.hex}",
        chart=build_latency_chart(names, detail.curves),
        latency_rows=build_latency_rows(detail.curves),
        quantiles=build_quantile_chart(detail.quantiles),
        detail=detail,
        evidence=evidence,
    )


def plan_more_blocks(
    report: ComparisonReport, cases: Sequence[CaseComparison], key: str
) -> MoreBlocks | None:
    """Return the blocks that cases need.

    None if the sides are not two commits, or if no case is open. `key` is the benchmark's.
    """
    baseline, contender = report.sides
    if baseline.commit == contender.commit:
        return None
    unpaired = [case for case in cases if not case.paired]
    in_reach = unpaired or [case for case in cases if case.missing_blocks]
    out_of_reach = 0 if unpaired else sum(case.out_of_reach for case in cases)
    if not in_reach and not out_of_reach:
        return None
    blocks = 7 if unpaired else max((case.missing_blocks or 0 for case in in_reach), default=0)
    # The run measures all these cases in the same number of rounds.
    times = [
        blocks * case.missing_s / case.missing_blocks
        for case in in_reach
        if case.missing_s is not None and case.missing_blocks
    ]
    query = {
        "benchmark": key,
        "baseline": baseline.commit.short_sha,
        "contender": contender.commit.short_sha,
        "rounds": blocks,
        "hosts": sorted({case.host.name for case in in_reach}),
        "cases": "" if len(in_reach) == len(report.cases) else build_expression(in_reach),
    }
    return MoreBlocks(
        blocks=blocks,
        cases=len(in_reach),
        out_of_reach=out_of_reach,
        seconds=sum(times) if times and not unpaired else None,
        query=urlencode({name: value for name, value in query.items() if value}, doseq=True),
    )


def build_expression(cases: Sequence[CaseComparison]) -> str:
    """Return an expression for these cases (benchmarks/choice.py); empty if there are many."""
    if len(cases) > _MOST_NAMED:
        return ""
    terms = dict.fromkeys(
        " and ".join(f"{axis} == {value!r}" for axis, value in case.case.parameters.items())
        for case in cases
    )
    text = " or ".join(f"({each})" if len(terms) > 1 else each for each in terms if each)
    return text if len(text) <= MAX_LENGTH else ""


def _build_point_urls(report: ComparisonReport, evidence: Evidence, key: str) -> tuple[str, str]:
    sides = zip(evidence.points[key], (report.baseline, report.contender), strict=True)
    before, after = (
        reverse("history-point", args=[series, commit.sha]) if series else ""
        for series, commit in sides
    )
    return before, after


def _build_column(metric: MetricComparison, reach: float) -> Column:
    margin = round(metric.margin * _UNITS)
    return Column(
        key=metric.key,
        title=metric.title,
        better=metric.better,
        reach_shown=_format_half_width(reach),
        half_width=round(reach * _UNITS),
        margin_path=f"M{-margin} 6H{margin}",
    )


def _format_half_width(reach: float) -> str:
    return format_percent(reach, decimals=0 if reach >= 0.1 else 1)


def _build_case_row(
    case: CaseComparison, columns: Sequence[Column], base: str, *, names_host: bool
) -> CaseRow:
    metrics = {metric.info.key: metric for metric in case.metrics if metric.primary}
    host, label = case.host.name, case.case.label
    if case.contender_host.pk != case.host.pk:
        host, names_host = f"{host} → {case.contender_host.name}", True
    if case.contender_case.pk != case.case.pk:
        label = f"{label} → {case.contender_case.label}"
    return CaseRow(
        url=f"case?{base}&case_key={case.case.key}&host_id={case.host.pk.hex}",
        label=label,
        host=host if names_host else "",
        verdict=case.outcome,
        symbol=VERDICT_SYMBOLS.get(case.outcome, "!"),
        remark=_build_remark(case),
        cells=tuple((column, _change_cell(metrics.get(column.key))) for column in columns),
    )


def _build_remark(case: CaseComparison) -> str:
    """Return remarks that qualify the verdict of a row."""
    remarks = [*describe_failures(case)]
    if not case.paired:
        remarks.append("unpaired")
    elif case.out_of_reach:
        remarks.append("may stay open")
    elif case.missing:
        remarks.append(f"about {case.missing.text}")
    if case.excluded_blocks:
        remarks.append(f"✕ {case.excluded_blocks} excluded")
    if case.suspect_blocks:
        remarks.append(f"! {case.suspect_blocks} suspect{_describe_dependence(case)}")
    return " · ".join(remarks)


def _describe_dependence(case: CaseComparison) -> str:
    """Return the verdict without the suspect blocks, if it is another one."""
    other = case.verdict_without_suspect
    return "" if other in (None, case.verdict) else f", without: {other}"


def _change_cell(metric: MetricComparison | None) -> ChangeCell | None:
    result = None if metric is None else metric.result
    if metric is None or result is None or result.change is None:
        return None
    sides = (result.baseline, result.contender)
    before, after = (format_value(each, metric.unit) for each in sides)
    interval = metric.interval
    low, high = (int(end * _UNITS) for end in interval or (0.0, 0.0))
    return ChangeCell(
        change=format_claim(result.change, result.likely_change),
        values=f"{before} → {after}",
        interval=format_interval(interval) if interval else "",
        verdict=metric.verdict or "",
        title="" if metric.q_value is None else f"q value {format_p_value(metric.q_value)}",
        range_path=f"M{low} 6H{high}" if interval else "",
        point_path=f"M{int(result.change * _UNITS)} 6h0",
    )


BAR = {"bar_width": BAR_WIDTH, "half": f"{BAR_WIDTH / 2:.0f}"}
