"""Why a comparison says what it says, for machines: a code, and the same in words."""

from collections import Counter
from enum import StrEnum

from ninja import Schema

from orchestrator.comparisons.compared import (
    CaseComparison,
    ComparisonReport,
    MetricComparison,
)
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.paired import FEWEST_BLOCKS


class ReasonCode(StrEnum):
    """Of primary metrics: `beyond_margin` and `within_margin` are changes that are real,
    `proven_within_margin` is proven to be none that matters; `chance_among_many` looked real until
    it was counted how much was looked at; all down to `interval_too_wide` leave it open. Of cases:
    `unpaired`, `excluded_blocks`, `suspect_blocks`. Of the whole: how many cases have which
    verdict, and `mismatch`."""

    BEYOND_MARGIN = "beyond_margin"
    WITHIN_MARGIN = "within_margin"
    PROVEN_WITHIN_MARGIN = "proven_within_margin"
    CHANCE_AMONG_MANY = "chance_among_many"
    NOT_MEASURED_TOGETHER = "not_measured_together"
    NO_RATIO = "no_ratio"
    TOO_FEW_BLOCKS = "too_few_blocks"
    INTERVAL_TOO_WIDE = "interval_too_wide"
    UNPAIRED = "unpaired"
    EXCLUDED_BLOCKS = "excluded_blocks"
    SUSPECT_BLOCKS = "suspect_blocks"
    CASES_REGRESSED = "cases_regressed"
    CASES_IMPROVED = "cases_improved"
    CASES_INCONCLUSIVE = "cases_inconclusive"
    CASES_TRIVIAL = "cases_trivial"
    CASES_EQUIVALENT = "cases_equivalent"
    MISMATCH = "mismatch"


class ReasonOut(Schema):
    """`metric`: the one it speaks of. `count`: of blocks, or of cases."""

    code: ReasonCode
    metric: str | None
    count: int | None
    text: str


class MissingOut(Schema):
    """What would probably settle what is open: so many more blocks of the case that needs most,
    so many trials of all cases together, in so many seconds of machine time."""

    blocks: int
    trials: int
    seconds: float | None


def reasons_of_case(case: CaseComparison) -> list[ReasonOut]:
    found = [_of_metric(metric) for metric in case.metrics if metric.primary]
    told = (
        (not case.paired, ReasonCode.UNPAIRED, None, "the sides share no block"),
        (
            case.excluded_blocks,
            ReasonCode.EXCLUDED_BLOCKS,
            case.excluded_blocks,
            "excluded blocks: a trial failed or is invalid",
        ),
        (
            case.suspect_blocks,
            ReasonCode.SUSPECT_BLOCKS,
            case.suspect_blocks,
            "blocks with a suspect trial",
        ),
    )
    return found + [
        ReasonOut(code=code, metric=None, count=count, text=text)
        for holds, code, count, text in told
        if holds
    ]


def reasons_of_report(report: ComparisonReport) -> list[ReasonOut]:
    """Verdicts of cases in the order of the attention they need, then what is not alike."""
    counts = Counter(Verdict(case.verdict) for case in report.cases)
    found = [
        ReasonOut(
            code=ReasonCode(f"cases_{verdict}"),
            metric=None,
            count=counts[verdict],
            text=f"{counts[verdict]} of {len(report.cases)} cases {verdict}",
        )
        for verdict in Verdict
        if counts[verdict]
    ]
    return found + [
        ReasonOut(
            code=ReasonCode.MISMATCH, metric=None, count=None, text=f"{each.what}: {each.reason}"
        )
        for each in report.mismatches
    ]


def missing_of_case(case: CaseComparison) -> MissingOut | None:
    if case.missing_blocks is None:
        return None
    blocks = case.missing_blocks
    return MissingOut(blocks=blocks, trials=2 * blocks, seconds=case.missing_s)


def missing_of_report(report: ComparisonReport) -> MissingOut | None:
    """Null where nothing is open, or where nobody can tell."""
    found = [each for case in report.cases if (each := missing_of_case(case)) is not None]
    if not found:
        return None
    known = [each.seconds for each in found if each.seconds is not None]
    return MissingOut(
        blocks=max(each.blocks for each in found),
        trials=sum(each.trials for each in found),
        seconds=sum(known) if len(known) == len(found) else None,
    )


def _of_metric(metric: MetricComparison) -> ReasonOut:
    text = "; ".join(metric.reasons)
    if metric.interval is not None and metric.change is not None:
        low, high = metric.interval
        text = f"{metric.change:+.2%} ({low:+.2%} to {high:+.2%}), margin {metric.margin:.1%}" + (
            f"; {text}" if text else ""
        )
    return ReasonOut(code=_code_of(metric), metric=metric.key, count=metric.blocks, text=text)


def _code_of(metric: MetricComparison) -> ReasonCode:
    decided = {
        Verdict.REGRESSED: ReasonCode.BEYOND_MARGIN,
        Verdict.IMPROVED: ReasonCode.BEYOND_MARGIN,
        Verdict.TRIVIAL: ReasonCode.WITHIN_MARGIN,
        Verdict.EQUIVALENT: ReasonCode.PROVEN_WITHIN_MARGIN,
    }
    verdict = Verdict(metric.verdict)
    if verdict in decided:
        return decided[verdict]
    if Verdict(metric.found.verdict) is not verdict:
        return ReasonCode.CHANCE_AMONG_MANY
    if not metric.blocks:
        return ReasonCode.NOT_MEASURED_TOGETHER
    if metric.blocks < FEWEST_BLOCKS:
        return ReasonCode.TOO_FEW_BLOCKS
    return ReasonCode.NO_RATIO if metric.change is None else ReasonCode.INTERVAL_TOO_WIDE
