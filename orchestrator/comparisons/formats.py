"""The formats of a comparison: JSON (API, page and command line), CSV, and Markdown."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cli.pitwall.units import format_claim, format_interval
from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.benchmarks.models import Commit
from orchestrator.comparisons.evidence import LatencyDetail, load_latency_detail
from orchestrator.comparisons.heatmap import list_primary_metrics
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.reasons import (
    MissingMeasurements,
    build_case_reasons,
    build_report_reasons,
    build_sensitivity_note,
    count_missing_for_case,
    count_missing_for_report,
)
from orchestrator.comparisons.report import (
    CaseComparison,
    CaseName,
    ComparisonReport,
    MetricComparison,
    Sensitivity,
)
from orchestrator.comparisons.sides import Side
from orchestrator.core.spreadsheets import render_csv
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.needed_blocks import export_needed_blocks
from orchestrator.stats.order_effect import OrderEffect
from orchestrator.stats.saturated_blocks import SaturatedEstimate
from orchestrator.stats.unpaired import UNCONFIRMED

#: Rows in Markdown: changed cases, or inconclusive ones if none changed.
MOST_CHANGED, MOST_OPEN = 30, 10
#: A report of more cases has no latencies; a report of one case has them.
MAX_CASES_WITH_LATENCY = 20
SYMBOLS: Mapping[str, str] = {
    "broken": "✕",
    "saturated": "⤒",
    "fixed": "✓",
    "improved": "▲",
    "regressed": "▼",
    "equivalent": "=",
    "trivial": "≈",
    "inconclusive": "?",
    UNCONFIRMED: "?",
}
_COLUMNS = (
    "verdict", "paired", "excluded_blocks", "suspect_blocks", "verdict_without_suspect",
    "baseline_failed", "contender_failed", "metric", "unit", "better", "primary",
    "metric_verdict", "baseline", "contender", "change", "likely_change", "low", "high",
    "confidence", "margin", "blocks",
    "p_value", "q_value", "reasons", "order_effect", "order_low", "order_high", "order_note",
    "with_saturated", "with_saturated_low", "with_saturated_high", "with_saturated_bound",
    "saturated_blocks",
    "baseline_builds", "contender_builds",
)  # fmt: skip


def to_markdown(report: ComparisonReport, web_url: str) -> str:
    """The verdict, its limits and the most important cases, for a pull request.

    Text that users entered is formatted as code, where it mentions nobody and links to nothing.
    `web_url`: the address of the whole comparison.
    """
    parts = [
        f"**{_mark(report.outcome)}**: {_escape(report.summary)}",
        _format_sides(report),
    ]
    parts += [f"> {_escape(note)}" for note in report.notes if not report.paired][:1]
    if report.sensitivity is not None:
        parts.append(f"> {_escape(build_sensitivity_note(report.sensitivity))}")
    if report.mismatches:
        parts.append("\n".join(_format_mismatches(report)))
    shown = _select_important_cases(report)
    if shown:
        parts.append(_render_table(report, shown))
    parts.append(_count_other_cases(report, shown))
    parts.append(f"[All numbers, with their intervals and trials]({_escape_link(web_url)})")
    return "\n\n".join(part for part in parts if part) + "\n"


def to_csv(report: ComparisonReport) -> str:
    """A row for each metric of each case; a case without metrics has one row.

    Changes are shares: 0.05 is 5 %. Values are in the unit of the column `unit`.
    """
    names = list(dict.fromkeys(name for case in report.cases for name in case.case.parameters))
    heads = ["case", "case_key", "contender_case", *(f"axis_{name}" for name in names),
             "host", "profile", "contender_host", *_COLUMNS]  # fmt: skip
    rows = (row for case in report.cases for row in _iterate_csv_rows(case, names))
    return render_csv([heads, *rows])


def to_json(report: ComparisonReport, web_url: str) -> str:
    return json.dumps(to_dict(report, web_url), indent=1, ensure_ascii=False) + "\n"


def to_dict(report: ComparisonReport, web_url: str, *, with_latency: bool = True) -> dict[str, Any]:
    """The JSON form of a report: that of the API, of the page and of `pitwall local`.

    `api.schemas.comparisons.ComparisonOut` describes it. Latencies are read from the database; they
    are null without `with_latency`, and in a report of more than MAX_CASES_WITH_LATENCY cases.
    """
    with_latency = with_latency and len(report.cases) <= MAX_CASES_WITH_LATENCY
    return {
        "benchmark": report.benchmark.slug,
        "project": report.benchmark.project.slug,
        "baseline": _build_commit_dict(report.baseline),
        "contender": _build_commit_dict(report.contender),
        "sides": [_export_side(side) for side in report.sides],
        "paired": report.paired,
        "mismatches": [
            {
                "aspect": mismatch.aspect,
                "baseline": mismatch.baseline,
                "contender": mismatch.contender,
                "reason": mismatch.reason,
            }
            for mismatch in report.mismatches
        ],
        "tests": report.tests,
        "changed": report.changed,
        "survived": report.survived,
        "verdict": report.verdict,
        "counts": report.counts,
        "without_suspect": _export_sensitivity(report.sensitivity),
        "reasons": [asdict(reason) for reason in build_report_reasons(report)],
        "missing": _export_missing(count_missing_for_report(report)),
        "summary": report.summary,
        "notes": list(report.notes),
        "web_url": web_url,
        "cases": [
            _export_case(case, load_latency_detail(report, case) if with_latency else None)
            for case in report.cases
        ],
    }


def _export_case(case: CaseComparison, latency: LatencyDetail | None) -> dict[str, Any]:
    return {
        "case": _name_dict(case.case),
        "contender_case": _name_dict(case.contender_case),
        "host": case.host.name,
        "contender_host": case.contender_host.name,
        "paired": case.paired,
        "missing_blocks": case.missing_blocks,
        "missing_blocks_range": case.missing.range if case.missing else None,
        "missing_s": case.missing_s,
        "missing": _export_missing(count_missing_for_case(case)),
        "verdict": case.verdict,
        "reasons": [asdict(reason) for reason in build_case_reasons(case)],
        "open_loop": case.open_loop,
        "excluded_blocks": case.excluded_blocks,
        "suspect_blocks": case.suspect_blocks,
        "verdict_without_suspect": case.verdict_without_suspect,
        "baseline_failed": case.outcomes.failures[0],
        "contender_failed": case.outcomes.failures[1],
        "validity_issues": [asdict(issue) for issue in case.validity_issues],
        "metrics": [_export_metric(metric) for metric in case.metrics],
        "latency": _export_latency(latency) if latency else None,
        "quantiles": _export_quantiles(latency) if latency else None,
    }


def _export_metric(metric: MetricComparison) -> dict[str, Any]:
    return {
        "metric": metric.key,
        "title": metric.title,
        "unit": metric.unit,
        "better": metric.better,
        "primary": metric.primary,
        "margin": metric.margin,
        "baseline": metric.baseline,
        "contender": metric.contender,
        "change": metric.change,
        "likely_change": metric.likely_change,
        "interval": metric.interval,
        "confidence": metric.result.confidence,
        "blocks": metric.blocks,
        "p_value": metric.p_value,
        "q_value": metric.q_value,
        **export_needed_blocks(metric.needed, metric.blocks),
        "verdict": metric.verdict,
        "reasons": list(metric.reasons),
        "order_effect": _export_order_effect(metric.result.order_effect),
        "order_note": metric.result.order_note,
        "with_saturated": _export_with_saturated(metric.with_saturated),
        "builds": _export_builds(metric),
    }


def _export_with_saturated(estimate: SaturatedEstimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "change": estimate.change,
        "interval": (estimate.low, estimate.high),
        "bound": estimate.bound,
        "blocks": estimate.blocks,
    }


def _export_builds(metric: MetricComparison) -> tuple[int, int] | None:
    """Return the number of builds of both sides; None if one of them is not known."""
    return metric.result.builds if all(metric.result.builds) else None


def _export_order_effect(effect: OrderEffect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    return {"change": effect.change, "interval": (effect.low, effect.high)}


def _build_commit_dict(commit: Commit) -> dict[str, str]:
    return {"commit": commit.sha, "short": commit.short_sha, "subject": commit.subject}


def _export_side(side: Side) -> dict[str, Any]:
    return {
        "commit": side.commit.sha,
        "case": side.case.key if side.case else None,
        "host": side.host.name if side.host else None,
        "profile": side.profile.slug if side.profile else None,
        "tool": side.tool or None,
        "version": side.definition.version if side.definition else None,
    }


def _name_dict(case: CaseName) -> dict[str, Any]:
    return {"key": case.key, "label": case.label, "parameters": dict(case.parameters)}


def _export_sensitivity(sensitivity: Sensitivity | None) -> dict[str, Any] | None:
    if sensitivity is None:
        return None
    return {
        "blocks": sensitivity.blocks,
        "verdict": sensitivity.verdict,
        "counts": sensitivity.counts,
        "changed_cases": sensitivity.changed,
    }


def _export_missing(missing: MissingMeasurements | None) -> dict[str, Any] | None:
    return None if missing is None else asdict(missing)


def _export_latency(latency: LatencyDetail) -> dict[str, Any] | None:
    baseline, contender = latency.curves
    either = baseline or contender
    if either is None:
        return None
    unknown = [None] * len(either.percentiles)
    return {
        "percentiles": list(either.percentiles),
        "baseline": list(baseline.seconds) if baseline else unknown,
        "contender": list(contender.seconds) if contender else unknown,
    }


def _export_quantiles(latency: LatencyDetail) -> list[dict[str, Any]] | None:
    if latency.quantiles is None:
        return None
    return [
        {
            "percentile": point.percentile,
            "baseline": point.baseline_s,
            "contender": point.contender_s,
            "change": point.change,
            "interval": _pair_bounds(point.low, point.high),
            "band": _pair_bounds(point.band_low, point.band_high),
        }
        for point in latency.quantiles.points
    ]


def _pair_bounds(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _format_sides(report: ComparisonReport) -> str:
    baseline, contender = report.sides
    benchmark = f"{report.benchmark.project.slug}/{report.benchmark.slug}"
    return (
        f"{_format_side(contender)} against {_format_side(baseline)}, benchmark "
        f"{_quote_code(benchmark)}, "
        f"{len(report.cases)} case{'' if len(report.cases) == 1 else 's'} on "
        f"{_format_hosts(report)}."
    )


def _format_side(side: Side) -> str:
    query = side.query()
    query.pop("commit")
    more = ", ".join(f"{name} {_quote_code(value)}" for name, value in query.items())
    return (
        f"{_quote_code(side.commit.short_sha)} ({more})"
        if more
        else _quote_code(side.commit.short_sha)
    )


def _format_hosts(report: ComparisonReport) -> str:
    names = sorted({each.name for case in report.cases for each in _list_both_hosts(case)})
    first = ", ".join(_quote_code(name) for name in names[:6])
    return f"{first} and {len(names) - 6} more" if len(names) > 6 else first


def _list_both_hosts(case: CaseComparison) -> tuple[Any, Any]:
    return case.host, case.contender_host


def _format_mismatches(report: ComparisonReport) -> Iterator[str]:
    yield "> **Not comparable:**"
    for each in report.mismatches:
        yield (f"> - {_escape(each.aspect)}: {_quote_code(each.baseline)} against "
               f"{_quote_code(each.contender)}: {_escape(each.reason)}.")  # fmt: skip


def _select_important_cases(report: ComparisonReport) -> list[CaseComparison]:
    """The changed cases; if there are none, the inconclusive ones."""
    changed = [case for case in report.cases if ORDER[case.verdict] <= ORDER[Verdict.IMPROVED]]
    if changed:
        return changed[:MOST_CHANGED]
    return [case for case in report.cases if case.verdict == Verdict.INCONCLUSIVE][:MOST_OPEN]


def _render_table(report: ComparisonReport, shown: Sequence[CaseComparison]) -> str:
    metrics = list_primary_metrics(report)
    several = len({each.name for case in shown for each in _list_both_hosts(case)}) > 1
    heads = ["", "Case", *(["Host"] if several else []), *map(_escape, metrics.values())]
    rule = ["---"] * (len(heads) - len(metrics)) + ["--:"] * len(metrics)
    lines = [heads, rule, *(_render_row(case, metrics, several) for case in shown)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _render_row(case: CaseComparison, metrics: Mapping[str, str], several: bool) -> list[str]:
    by_key = {metric.key: metric for metric in case.metrics if metric.primary}
    label, host = case.case.label, case.host.name
    if case.contender_case.pk != case.case.pk:
        label += f" → {case.contender_case.label}"
    if case.contender_host.pk != case.host.pk:
        host += f" → {case.contender_host.name}"
    cells = [_format_metric(by_key.get(key)) for key in metrics]
    return [_mark(case.outcome), _quote_code(label),
            *([_quote_code(host)] if several else []), *cells]  # fmt: skip


def _mark(outcome: str) -> str:
    return f"{SYMBOLS.get(outcome, '!')} {outcome}"


def _format_metric(metric: MetricComparison | None) -> str:
    if metric is None or metric.change is None:
        return "–"
    text = format_claim(metric.change, metric.likely_change)
    if metric.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        text = f"**{text}**"
    if metric.interval is None:
        return text
    return f"{text} ({format_interval(metric.interval)})"


def _count_other_cases(report: ComparisonReport, shown: Sequence[CaseComparison]) -> str:
    rest = Counter(case.verdict for case in report.cases)
    rest.subtract(case.verdict for case in shown)
    counts = [f"{rest[verdict]} {verdict}" for verdict in ORDER if rest[verdict]]
    return f"{'And' if shown else 'Cases'}: {', '.join(counts)}." if counts else ""


def _escape(text: str) -> str:
    """Text without signs that Markdown or HTML would interpret."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#~&" else sign for sign in flat)


def _quote_code(text: str) -> str:
    """Text as Markdown code, safe in a cell of a table."""
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{flat}`" if flat else "–"


def _escape_link(address: str) -> str:
    return address.replace("(", "%28").replace(")", "%29").replace(" ", "%20")


def _iterate_csv_rows(case: CaseComparison, names: Sequence[str]) -> Iterator[list[object]]:
    places = [case.case.parameters.get(name) for name in names]
    first = [
        case.case.label,
        case.case.key,
        case.contender_case.label,
        *(None if value is None else format_axis_value(value) for value in places),
        case.host.name,
        case.host.profile,
        case.contender_host.name,
        case.verdict,
        case.paired,
        case.excluded_blocks,
        case.suspect_blocks,
        case.verdict_without_suspect,
        *case.outcomes.failures,
    ]
    for metric in case.metrics:
        yield [*first, *_build_metric_columns(metric).values()]
    if not case.metrics:
        yield [*first, *[None] * (len(_COLUMNS) - 7)]


def _build_metric_columns(metric: MetricComparison) -> dict[str, Any]:
    """The last columns of `_COLUMNS`, in their order."""
    low, high = metric.interval or (None, None)
    order, full = metric.result.order_effect, metric.with_saturated
    before, after = _export_builds(metric) or (None, None)
    return {
        "metric": metric.key,
        "unit": metric.unit,
        "better": metric.better,
        "primary": metric.primary,
        "metric_verdict": metric.verdict,
        "baseline": metric.baseline,
        "contender": metric.contender,
        "change": metric.change,
        "likely_change": metric.likely_change,
        "low": low,
        "high": high,
        "confidence": metric.result.confidence,
        "margin": metric.margin,
        "blocks": metric.blocks,
        "p_value": metric.p_value,
        "q_value": metric.q_value,
        "reasons": "; ".join(metric.reasons),
        "order_effect": order.change if order else None,
        "order_low": order.low if order else None,
        "order_high": order.high if order else None,
        "order_note": metric.result.order_note,
        "with_saturated": full.change if full else None,
        "with_saturated_low": full.low if full else None,
        "with_saturated_high": full.high if full else None,
        "with_saturated_bound": full.bound if full else None,
        "saturated_blocks": full.blocks if full else 0,
        "baseline_builds": before,
        "contender_builds": after,
    }
