"""The result of a comparison in words: summary, notes, and reasons with codes for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import F

from cli.pitwall.units import format_claim, format_interval, format_items, format_percent
from orchestrator.comparisons.build_notes import build_build_notes
from orchestrator.comparisons.exclusions import SharedRun
from orchestrator.comparisons.order_notes import build_order_notes
from orchestrator.comparisons.report import (
    CaseComparison,
    ComparisonReport,
    MetricComparison,
    Sensitivity,
)
from orchestrator.comparisons.selection import Selection
from orchestrator.comparisons.sensitivity import describe_sensitivity
from orchestrator.comparisons.sides import Side
from orchestrator.loadtools.metrics import find_metric
from orchestrator.runs.models import HostRole, Job, Placement
from orchestrator.stats.block_outcomes import MAX_EXCLUDED
from orchestrator.stats.comparison import ALPHA, Comparison, Verdict
from orchestrator.stats.conclusion import Withheld, withhold_verdict
from orchestrator.stats.multiple_testing import CLAIMS, REPORT_ORDER, Headline
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.unpaired import UNPAIRED

LOOPBACK_NOTE = "Server and load generator shared one machine and talked over loopback."
SHARED_HOST_NOTE = (
    "Other work ran on a shared host: the trials that it disturbed count, so intervals are wider."
)

_SENTENCES = {
    Verdict.BROKEN: "{contender} is broken: it fails where {baseline} works.",
    Verdict.SATURATED: "{contender} is saturated: it fails under the load that {baseline} carries.",
    Verdict.FIXED: "{contender} is fixed: it works where {baseline} fails.",
    Verdict.REGRESSED: "{contender} is a regression: {change}.",
    Verdict.IMPROVED: "{contender} is an improvement: {change}.",
    Verdict.TRIVIAL: "{contender} changed, but by less than the margin: {change}.",
    Verdict.EQUIVALENT: "{contender} performs the same: any change is proven to be within the "
    "margin.",
    Verdict.INCONCLUSIVE: "Inconclusive for {contender}: {change}.",
}
_UNCONFIRMED = "{contender} differs, not confirmed: {change}."
#: For two sides of one commit.
_OF_ONE_COMMIT = {
    Verdict.BROKEN: "{contender} fails where {baseline} works.",
    Verdict.SATURATED: "{contender} fails under the load that {baseline} carries.",
    Verdict.FIXED: "{contender} works where {baseline} fails.",
    Verdict.REGRESSED: "{contender} is worse than {baseline}: {change}.",
    Verdict.IMPROVED: "{contender} is better than {baseline}: {change}.",
    Verdict.TRIVIAL: "{contender} differs from {baseline}, but by less than the margin: {change}.",
    Verdict.EQUIVALENT: "{contender} performs the same as {baseline}: any difference is proven to "
    "be within the margin.",
    Verdict.INCONCLUSIVE: "Inconclusive between {contender} and {baseline}: {change}.",
}
_UNCONFIRMED_OF_ONE_COMMIT = "{contender} differs from {baseline}, not confirmed: {change}."


_WITHHELD_CLAUSES = {
    Withheld.TOO_MANY_EXCLUDED: f"more than {format_percent(MAX_EXCLUDED)} of the blocks are "
    "excluded, so the values of the others give no verdict",
    Withheld.EXCLUSIONS_DIFFER: "one side lost more blocks than the other (exact McNemar test), so "
    "the values prove no equivalence",
}


class ReasonCode(StrEnum):
    """Codes of reasons.

    - of primary metrics: a real change (`beyond_margin`, `within_margin`), a real difference whose
      size is not known well enough (`size_not_decided`), no change
      (`proven_within_margin`), a change that may be chance among many metrics
      (`chance_among_many`), a difference between few runs (`differs_not_confirmed`), and why a
      metric is inconclusive (`not_measured_together` to `too_few_runs`)
    - of primary metrics and cases: `too_many_excluded` and `exclusions_differ`, why their values
      give no verdict, or prove no equivalence
    - of cases: how often each side failed (`contender_failed`, `baseline_failed`), that only one
      side has values (`one_sided`), `unpaired`, `excluded_blocks`, `suspect_blocks`
    - of the whole comparison: how many cases have which verdict, and `mismatch`
    """

    BEYOND_MARGIN = "beyond_margin"
    WITHIN_MARGIN = "within_margin"
    PROVEN_WITHIN_MARGIN = "proven_within_margin"
    CHANCE_AMONG_MANY = "chance_among_many"
    DIFFERS_NOT_CONFIRMED = "differs_not_confirmed"
    NOT_MEASURED_TOGETHER = "not_measured_together"
    NO_RATIO = "no_ratio"
    TOO_FEW_BLOCKS = "too_few_blocks"
    SIZE_NOT_DECIDED = "size_not_decided"
    INTERVAL_TOO_WIDE = "interval_too_wide"
    TOO_FEW_RUNS = "too_few_runs"
    TOO_MANY_EXCLUDED = "too_many_excluded"
    EXCLUSIONS_DIFFER = "exclusions_differ"
    CONTENDER_FAILED = "contender_failed"
    BASELINE_FAILED = "baseline_failed"
    ONE_SIDED = "one_sided"
    UNPAIRED = "unpaired"
    EXCLUDED_BLOCKS = "excluded_blocks"
    SUSPECT_BLOCKS = "suspect_blocks"
    CASES_BROKEN = "cases_broken"
    CASES_SATURATED = "cases_saturated"
    CASES_REGRESSED = "cases_regressed"
    CASES_FIXED = "cases_fixed"
    CASES_IMPROVED = "cases_improved"
    CASES_INCONCLUSIVE = "cases_inconclusive"
    CASES_TRIVIAL = "cases_trivial"
    CASES_EQUIVALENT = "cases_equivalent"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """`metric`: the key of the metric that it is about. `count`: of blocks, or of cases."""

    code: ReasonCode
    metric: str | None = None
    count: int | None = None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingMeasurements:
    """The measurements that would probably decide the inconclusive cases.

    Blocks of the case that needs most of them, trials of all cases, and seconds of machine time
    (None if unknown).
    """

    blocks: int
    trials: int
    seconds: float | None


def summarise_comparison(
    headline: Headline, sides: tuple[Side, Side], named: Comparison | None
) -> str:
    """The verdict of the whole comparison in one or two sentences.

    `named`: the comparison of the metric that the headline names.
    """
    names = _name_sides(sides)
    open_ = headline.counts.get(Verdict.INCONCLUSIVE, 0)
    if headline.cell is None and open_ == headline.cases:
        return f"No usable data for {names['contender']}: no block is complete and valid."
    one_commit = sides[0].commit == sides[1].commit
    sentence = (_OF_ONE_COMMIT if one_commit else _SENTENCES)[headline.verdict]
    if named is not None and named.unconfirmed:
        sentence = _UNCONFIRMED_OF_ONE_COMMIT if one_commit else _UNCONFIRMED
    sentence = sentence.format(**names, change=_describe_headline_change(headline, named))
    sentence = f"{sentence[0].upper()}{sentence[1:]}" if names["differ"] else sentence
    if headline.cases > 1:
        sentence += f" {format_counts(headline.counts)} of {headline.cases} cases."
    return sentence


def format_counts(counts: Mapping[Verdict, int]) -> str:
    """Return `2 regressed, 1 improved, 15 equivalent`, the worst first."""
    return ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in REPORT_ORDER if counts.get(verdict)
    )


def _describe_headline_change(headline: Headline, named: Comparison | None) -> str:
    """Return the change that the headline names, with its interval; counts of what is open.

    The largest of many changes that are not decided is mostly noise, so none is named.
    """
    if headline.cell is None or named is None:
        return "some cases have no usable data"
    if headline.verdict is Verdict.INCONCLUSIVE:
        metrics = format_items(headline.metrics, "primary metric")
        verb = "is" if headline.open_metrics == 1 else "are"
        return f"{headline.open_metrics} of {metrics} {verb} not decided"
    info = find_metric(headline.cell[1])
    title = info.title if info else headline.cell[1]
    shown = format_claim(named.change, named.likely_change)
    change = f"{title[0].lower()}{title[1:]} {shown}"
    if named.low is not None and named.high is not None:
        change += f" ({format_interval((named.low, named.high))})"
    if headline.alike > 1:
        change += f", the largest of {headline.alike} such changes"
    return change


def _name_sides(sides: tuple[Side, Side]) -> dict[str, str]:
    """Return the hashes of two commits, otherwise what the sides differ in, such as `host ant`."""
    if sides[0].commit != sides[1].commit:
        shas = (side.commit.short_sha for side in sides)
        return dict(zip(("baseline", "contender"), shas, strict=True), differ="")
    queries = [side.query() | ({"case": side.case.label} if side.case else {}) for side in sides]
    differ = [name for name in queries[1] if queries[1][name] != queries[0].get(name)]
    names = (
        ", ".join(f"{name} {query[name]}" if name in query else f"any {name}" for name in differ)
        for query in queries
    )
    return dict(zip(("baseline", "contender"), names, strict=True), differ=", ".join(differ))


def build_notes(
    selection: Selection,
    cases: Sequence[CaseComparison],
    runs: Sequence[SharedRun],
    same_builds: Iterable[str],
    sensitivity: Sensitivity | None,
    *,
    has_steps: bool,
) -> tuple[str, ...]:
    """The limits that a reader must know, the most important one first.

    `has_steps`: the definition has build steps.
    """
    equal = tuple(same_builds)
    return (
        *_build_unpaired_notes(cases),
        *equal,
        *(() if equal else build_build_notes(cases, has_steps=has_steps)),
        *_build_network_notes(runs),
        *_build_shared_host_notes(runs),
        *_build_selection_notes(selection),
        *_build_selection_exclusion_notes(selection, cases, sensitivity),
        *build_order_notes(cases),
    )


def _build_unpaired_notes(cases: Sequence[CaseComparison]) -> Iterator[str]:
    unpaired = sum(not case.paired for case in cases)
    if unpaired:
        some = f"{format_items(unpaired, 'case')} {'was' if unpaired == 1 else 'were'}"
        which = "Both sides were" if unpaired == len(cases) else some
        yield (
            f"Unpaired: {which} {UNPAIRED}. Measure both in one run to see the effect of the code."
        )


def _build_network_notes(runs: Sequence[SharedRun]) -> Iterator[str]:
    if not runs:
        return
    variants = [variant for run in runs for variant in run.variants]
    other_host = Placement.objects.filter(
        job__run__variants__in=variants, role=HostRole.GENERATOR, host__isnull=False
    ).exclude(host=F("job__host"))
    if other_host.exists():
        yield "The load came over the network, from another host."
    else:
        yield LOOPBACK_NOTE


def _build_shared_host_notes(runs: Sequence[SharedRun]) -> Iterator[str]:
    variants = [variant for run in runs for variant in run.variants]
    if variants and Job.objects.filter(run__variants__in=variants, shared_hosts=True).exists():
        yield SHARED_HOST_NOTE


def _build_selection_notes(selection: Selection) -> Iterator[str]:
    excluded_trials = sum(case.excluded_trials for case in selection.cases)
    if excluded_trials:
        yield (
            f"{excluded_trials} trials of other versions of the definition, or of the host before "
            "it changed, were excluded: only the newest version that both sides have counts "
            f"(version {selection.version})."
        )
    if selection.one_sided:
        plural = "cases were" if selection.one_sided > 1 else "case was"
        yield f"{selection.one_sided} {plural} measured on one side only, and cannot be compared."


def _build_selection_exclusion_notes(
    selection: Selection,
    cases: Sequence[CaseComparison],
    sensitivity: Sensitivity | None,
) -> Iterator[str]:
    exclusions = (*selection.exclusions, *selection.excluded_cases.values())
    excluded = sum(each.excluded for each in exclusions)
    complete = sum(case.count for case in selection.cases if case.paired)
    if excluded:
        blocks = excluded + complete
        yield f"{excluded} of {blocks} blocks were excluded: a trial failed or is invalid."
    yield from _build_withheld_notes(cases)
    if sensitivity is not None:
        yield build_sensitivity_note(sensitivity)


def build_sensitivity_note(sensitivity: Sensitivity) -> str:
    contain = "block contains" if sensitivity.blocks == 1 else "blocks contain"
    return (
        f"{sensitivity.blocks} {contain} a suspect trial; the validity issues are the reasons. "
        f"{describe_sensitivity(sensitivity)}"
    )


def _build_withheld_notes(cases: Sequence[CaseComparison]) -> Iterator[str]:
    for obstacle, clause in _WITHHELD_CLAUSES.items():
        number = sum(case.withheld is obstacle for case in cases)
        if number:
            yield f"{number} of {format_items(len(cases), 'case')}: {clause}."


def build_report_reasons(report: ComparisonReport) -> list[Reason]:
    """The number of cases with each verdict, then the mismatches."""
    reasons = [
        Reason(
            code=ReasonCode(f"cases_{verdict}"),
            count=number,
            text=f"{number} of {len(report.cases)} cases {verdict}",
        )
        for verdict, number in report.counts.items()
    ]
    return reasons + [
        Reason(code=ReasonCode.MISMATCH, text=f"{mismatch.aspect}: {mismatch.reason}")
        for mismatch in report.mismatches
    ]


def build_case_reasons(case: CaseComparison) -> list[Reason]:
    reasons = [*_build_failure_reasons(case), *_build_withheld_reasons(case)]
    reasons += [
        _build_metric_reason(metric, case.withheld) for metric in case.metrics if metric.primary
    ]
    if not case.paired:
        reasons.append(Reason(code=ReasonCode.UNPAIRED, text="the sides share no block"))
    if case.excluded_blocks:
        reasons.append(
            Reason(
                code=ReasonCode.EXCLUDED_BLOCKS,
                count=case.excluded_blocks,
                text="blocks excluded: a trial failed or is invalid",
            )
        )
    if case.suspect_blocks:
        reasons.append(
            Reason(
                code=ReasonCode.SUSPECT_BLOCKS,
                count=case.suspect_blocks,
                text=f"blocks with a suspect trial{_describe_other_verdict(case)}",
            )
        )
    return reasons


def _describe_other_verdict(case: CaseComparison) -> str:
    other = case.verdict_without_suspect
    return "" if other is None else f"; without them the case is {other}"


def describe_failures(case: CaseComparison) -> tuple[str, ...]:
    """Return `the contender failed in 3 of 10 blocks` for each side that failed."""
    return tuple(reason.text for reason in _build_failure_reasons(case))


def _build_failure_reasons(case: CaseComparison) -> Iterator[Reason]:
    blocks = format_items(case.outcomes.blocks, "block")
    before, after = case.outcomes.failures
    for code, side, number in (
        (ReasonCode.CONTENDER_FAILED, "contender", after),
        (ReasonCode.BASELINE_FAILED, "baseline", before),
    ):
        if number:
            text = f"the {side} failed in {number} of {blocks}"
            yield Reason(code=code, count=number, text=text)


def describe_withheld(case: CaseComparison) -> str:
    """Return why the values of a case give no verdict, or prove no equivalence."""
    return _WITHHELD_CLAUSES[case.withheld] if case.withheld else ""


def _build_withheld_reasons(case: CaseComparison) -> Iterator[Reason]:
    if case.withheld:
        count = case.excluded_blocks
        yield Reason(code=ReasonCode(case.withheld), count=count, text=describe_withheld(case))
    elif not case.metrics and not case.excluded_blocks:
        yield Reason(code=ReasonCode.ONE_SIDED, text="only one side has values")


def _build_metric_reason(metric: MetricComparison, withheld: Withheld | None) -> Reason:
    text = "; ".join(metric.reasons)
    if metric.interval is not None and metric.change is not None:
        observed = format_claim(metric.change, metric.likely_change)
        observed += f" ({format_interval(metric.interval)})"
        margin = f"margin {format_percent(metric.margin)}"
        text = "; ".join(part for part in (f"{observed}, {margin}", text) if part)
    code = _classify_metric(metric, withheld)
    return Reason(code=code, metric=metric.key, count=metric.blocks, text=text)


def _classify_metric(metric: MetricComparison, withheld: Withheld | None) -> ReasonCode:
    decided = {
        Verdict.REGRESSED: ReasonCode.BEYOND_MARGIN,
        Verdict.IMPROVED: ReasonCode.BEYOND_MARGIN,
        Verdict.TRIVIAL: ReasonCode.WITHIN_MARGIN,
        Verdict.EQUIVALENT: ReasonCode.PROVEN_WITHIN_MARGIN,
    }
    verdict = Verdict(metric.verdict)
    if verdict in decided:
        return decided[verdict]
    if withheld and withhold_verdict(metric.result.verdict, withheld) is not metric.result.verdict:
        return ReasonCode(withheld)
    if Verdict(metric.result.verdict) in CLAIMS:
        return ReasonCode.CHANCE_AMONG_MANY
    if not metric.blocks:
        return ReasonCode.NOT_MEASURED_TOGETHER
    if metric.blocks < FEWEST_BLOCKS:
        return ReasonCode.TOO_FEW_BLOCKS
    if metric.change is None:
        return ReasonCode.NO_RATIO
    if metric.result.unconfirmed:
        return ReasonCode.DIFFERS_NOT_CONFIRMED
    if not metric.result.paired and metric.interval is None:
        return ReasonCode.TOO_FEW_RUNS
    is_real = metric.p_value is not None and metric.p_value < ALPHA
    return ReasonCode.SIZE_NOT_DECIDED if is_real else ReasonCode.INTERVAL_TOO_WIDE


def count_missing_for_case(case: CaseComparison) -> MissingMeasurements | None:
    if case.missing_blocks is None:
        return None
    blocks = case.missing_blocks
    return MissingMeasurements(blocks=blocks, trials=2 * blocks, seconds=case.missing_s)


def count_missing_for_report(report: ComparisonReport) -> MissingMeasurements | None:
    """None if no case is inconclusive, or if the number of blocks is unknown."""
    missing = [each for case in report.cases if (each := count_missing_for_case(case)) is not None]
    if not missing:
        return None
    seconds = [each.seconds for each in missing if each.seconds is not None]
    return MissingMeasurements(
        blocks=max(each.blocks for each in missing),
        trials=sum(each.trials for each in missing),
        seconds=sum(seconds) if len(seconds) == len(missing) else None,
    )
