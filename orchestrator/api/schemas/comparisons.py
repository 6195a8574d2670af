"""Two commits side by side."""

from collections.abc import Sequence
from urllib.parse import urlencode

from ninja import Schema

from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    commit_out,
    web_url,
)
from orchestrator.api.schemas.reasons import (
    MissingOut,
    ReasonOut,
    missing_of_case,
    missing_of_report,
    reasons_of_case,
    reasons_of_report,
)
from orchestrator.comparisons.case_detail import CaseDetail, detail_of
from orchestrator.comparisons.compared import (
    CaseComparison,
    CaseName,
    ComparisonReport,
    MetricComparison,
    Mismatch,
    address_of,
)
from orchestrator.comparisons.sides import Side
from orchestrator.measurements.validity_issues import ValidityIssue
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Verdict

#: In a comparison of more cases, latencies are told of a case that is asked for by name.
MOST_WITH_LATENCY = 20


class MetricOut(Schema):
    """`change` is contender / baseline - 1, `interval` its 95 % confidence interval.

    `q_value`, of primary metrics: among all cells that look as sure as this one, the share that did
    not change (Benjamini and Hochberg)."""

    metric: str
    title: str
    unit: str
    better: str
    primary: bool
    margin: float
    baseline: float | None
    contender: float | None
    change: float | None
    interval: tuple[float, float] | None
    blocks: int
    p_value: float | None
    q_value: float | None
    needed_blocks: int | None
    verdict: Verdict
    reasons: list[str]


class LatencyOut(Schema):
    """Seconds at each of `percentiles`; null at one that too few requests support."""

    percentiles: list[float]
    baseline: list[float | None]
    contender: list[float | None]


class QuantileOut(Schema):
    """The change at one percentile: `interval` bounds it alone, `band` all percentiles at once."""

    percentile: float
    baseline: float
    contender: float
    change: float
    interval: tuple[float, float] | None
    band: tuple[float, float] | None


class MismatchOut(Schema):
    """Something in which the two sides are not like for like, and why that matters."""

    what: str
    baseline: str
    contender: str
    reason: str


class SideOut(Schema):
    """What one side was narrowed down to; null is not narrowed down."""

    commit: str
    case: str | None
    host: str | None
    profile: str | None
    tool: str | None
    version: int | None


class ValidityIssueOut(Schema):
    """A reason of suspect or invalid trials, and how many of them have it."""

    code: str
    title: str
    trials: int


class CaseComparisonOut(Schema):
    """`excluded_blocks` were left out, because a trial failed or is invalid; of the others,
    `suspect_blocks` have a suspect trial. `validity_issues` say why (docs/validity.md).

    Not `paired`: the sides share no block, so that the machine's drift is in the change. So many
    `missing_blocks` more would probably decide what is open, in `missing_s` seconds; `missing` has
    that with the number of trials. `latency` and `quantiles` are null in a comparison of more than
    20 cases: ask for one `case`."""

    case: CaseOut
    contender_case: CaseOut
    host: str
    contender_host: str
    paired: bool
    missing_blocks: int | None
    missing_s: float | None
    missing: MissingOut | None
    verdict: Verdict
    reasons: list[ReasonOut]
    open_loop: bool
    excluded_blocks: int
    suspect_blocks: int
    validity_issues: list[ValidityIssueOut]
    metrics: list[MetricOut]
    latency: LatencyOut | None
    quantiles: list[QuantileOut] | None


class ComparisonOut(Schema):
    """`verdict` is that of the whole matrix; `notes` are what to know before believing it.
    `mismatches`: in what the sides are not like for like. `tests` is the number of primary metrics;
    `changed` of them are improved or regressed if each is tested alone, `survived` of them also at
    a false discovery rate of 5 %."""

    benchmark: str
    project: str
    baseline: CommitOut
    contender: CommitOut
    sides: list[SideOut]
    paired: bool
    mismatches: list[MismatchOut]
    tests: int
    changed: int
    survived: int
    verdict: Verdict
    reasons: list[ReasonOut]
    missing: MissingOut | None
    summary: str
    notes: list[str]
    web_url: str
    cases: list[CaseComparisonOut]


def comparison_out(report: ComparisonReport, run: Run | None = None) -> ComparisonOut:
    """`run`: the one run that the report is limited to, if it is."""
    with_latency = len(report.cases) <= MOST_WITH_LATENCY
    return ComparisonOut(
        benchmark=report.benchmark.slug,
        project=report.benchmark.project.slug,
        baseline=commit_out(report.baseline),
        contender=commit_out(report.contender),
        sides=[_side_out(side) for side in report.sides],
        paired=report.paired,
        mismatches=[_mismatch_out(each) for each in report.mismatches],
        tests=report.tests,
        changed=report.changed,
        survived=report.survived,
        verdict=Verdict(report.verdict),
        reasons=reasons_of_report(report),
        missing=missing_of_report(report),
        summary=report.summary,
        notes=list(report.notes),
        web_url=address_on_web(report, run),
        cases=[
            _case_out(case, detail_of(report, case) if with_latency else None)
            for case in report.cases
        ],
    )


def address_on_web(report: ComparisonReport, run: Run | None) -> str:
    """Of the page that shows the same."""
    return f"{web_url('compare')}?{urlencode(address_of(report, run))}"


def _side_out(side: Side) -> SideOut:
    return SideOut(
        commit=side.commit.sha,
        case=side.case.key if side.case else None,
        host=side.host.name if side.host else None,
        profile=side.profile.slug if side.profile else None,
        tool=side.tool or None,
        version=side.definition.version if side.definition else None,
    )


def _mismatch_out(each: Mismatch) -> MismatchOut:
    return MismatchOut(
        what=each.what, baseline=each.baseline, contender=each.contender, reason=each.reason
    )


def _case_out(compared: CaseComparison, detail: CaseDetail | None) -> CaseComparisonOut:
    return CaseComparisonOut(
        case=_name_out(compared.case),
        contender_case=_name_out(compared.contender_case),
        host=compared.host.name,
        contender_host=compared.contender_host.name,
        paired=compared.paired,
        missing_blocks=compared.missing_blocks,
        missing_s=compared.missing_s,
        verdict=Verdict(compared.verdict),
        reasons=reasons_of_case(compared),
        missing=missing_of_case(compared),
        open_loop=compared.open_loop,
        excluded_blocks=compared.excluded_blocks,
        suspect_blocks=compared.suspect_blocks,
        validity_issues=validity_issues_out(compared.validity_issues),
        metrics=[_metric_out(metric) for metric in compared.metrics],
        latency=_latency_out(detail) if detail else None,
        quantiles=_quantiles_out(detail) if detail else None,
    )


def _name_out(case: CaseName) -> CaseOut:
    return CaseOut(key=case.key, label=case.label, parameters=dict(case.parameters))


def validity_issues_out(issues: Sequence[ValidityIssue]) -> list[ValidityIssueOut]:
    return [
        ValidityIssueOut(code=each.code, title=each.title, trials=each.trials) for each in issues
    ]


def _metric_out(metric: MetricComparison) -> MetricOut:
    return MetricOut(
        metric=metric.key,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        primary=metric.primary,
        margin=metric.margin,
        baseline=metric.baseline,
        contender=metric.contender,
        change=metric.change,
        interval=metric.interval,
        blocks=metric.blocks,
        p_value=metric.p_value,
        q_value=metric.q_value,
        needed_blocks=metric.needed_blocks,
        verdict=Verdict(metric.verdict),
        reasons=list(metric.reasons),
    )


def _latency_out(detail: CaseDetail) -> LatencyOut | None:
    baseline, contender = detail.curves
    known = baseline or contender
    if known is None:
        return None
    unknown: list[float | None] = [None] * len(known.percentiles)
    return LatencyOut(
        percentiles=list(known.percentiles),
        baseline=list(baseline.seconds) if baseline else unknown,
        contender=list(contender.seconds) if contender else unknown,
    )


def _quantiles_out(detail: CaseDetail) -> list[QuantileOut] | None:
    if detail.quantiles is None:
        return None
    return [
        QuantileOut(
            percentile=each.percentile,
            baseline=each.baseline_s,
            contender=each.contender_s,
            change=each.change,
            interval=_bounds(each.low, each.high),
            band=_bounds(each.band_low, each.band_high),
        )
        for each in detail.quantiles.points
    ]


def _bounds(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
