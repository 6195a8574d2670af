"""Two commits side by side."""

from collections.abc import Sequence
from urllib.parse import urlencode

from ninja import Schema

from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    case_out,
    commit_out,
    web_url,
)
from orchestrator.results.doubts import Doubt
from orchestrator.results.reports import (
    CaseComparison,
    ComparisonReport,
    LatencyCurve,
    MetricComparison,
)
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Verdict


class MetricOut(Schema):
    """`change` is contender / baseline - 1, `interval` its 95 % confidence interval."""

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
    needed_blocks: int | None
    verdict: Verdict
    reasons: list[str]


class LatencyOut(Schema):
    """Seconds at each of `percentiles`; null at one that too few requests support."""

    percentiles: list[float]
    baseline: list[float | None]
    contender: list[float | None]


class DoubtOut(Schema):
    """A reason of suspect or invalid trials, and how many of them have it."""

    code: str
    title: str
    trials: int


class CaseComparisonOut(Schema):
    """`voided_blocks` were left out, because a trial failed or is invalid; of the others,
    `suspect_blocks` have a suspect trial. `doubts` say why (docs/validity.md)."""

    case: CaseOut
    host: str
    verdict: Verdict
    open_loop: bool
    voided_blocks: int
    suspect_blocks: int
    doubts: list[DoubtOut]
    metrics: list[MetricOut]
    latency: LatencyOut | None


class ComparisonOut(Schema):
    """`verdict` speaks of the whole matrix; `notes` are what to know before believing it."""

    benchmark: str
    project: str
    baseline: CommitOut
    contender: CommitOut
    verdict: Verdict
    summary: str
    notes: list[str]
    web_url: str
    cases: list[CaseComparisonOut]


def comparison_out(report: ComparisonReport, run: Run | None = None) -> ComparisonOut:
    """`run`: the one run that the report is limited to, if it is."""
    return ComparisonOut(
        benchmark=report.benchmark.slug,
        project=report.benchmark.project.slug,
        baseline=commit_out(report.baseline),
        contender=commit_out(report.contender),
        verdict=Verdict(report.verdict),
        summary=report.summary,
        notes=list(report.notes),
        web_url=_web_url(report, run),
        cases=[_case_out(case) for case in report.cases],
    )


def _web_url(report: ComparisonReport, run: Run | None) -> str:
    benchmark = report.benchmark
    query = {
        "benchmark": f"{benchmark.project.slug}/{benchmark.slug}",
        "baseline": report.baseline.sha,
        "contender": report.contender.sha,
    }
    if run is not None:
        query["run"] = str(run.pk)
    return f"{web_url('compare')}?{urlencode(query)}"


def _case_out(compared: CaseComparison) -> CaseComparisonOut:
    return CaseComparisonOut(
        case=case_out(compared.case),
        host=compared.host.name,
        verdict=Verdict(compared.verdict),
        open_loop=compared.open_loop,
        voided_blocks=compared.voided_blocks,
        suspect_blocks=compared.suspect_blocks,
        doubts=doubts_out(compared.doubts),
        metrics=[_metric_out(metric) for metric in compared.metrics],
        latency=_latency_out(compared.baseline_latency, compared.contender_latency),
    )


def doubts_out(doubts: Sequence[Doubt]) -> list[DoubtOut]:
    return [DoubtOut(code=each.code, title=each.title, trials=each.trials) for each in doubts]


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
        needed_blocks=metric.needed_blocks,
        verdict=Verdict(metric.verdict),
        reasons=list(metric.reasons),
    )


def _latency_out(
    baseline: LatencyCurve | None, contender: LatencyCurve | None
) -> LatencyOut | None:
    known = baseline or contender
    if known is None:
        return None
    unknown: list[float | None] = [None] * len(known.percentiles)
    return LatencyOut(
        percentiles=list(known.percentiles),
        baseline=list(baseline.seconds) if baseline else unknown,
        contender=list(contender.seconds) if contender else unknown,
    )
