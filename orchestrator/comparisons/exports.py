"""A comparison as Markdown for a pull request, as CSV and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.benchmarks.fields import shown_value
from orchestrator.comparisons.compared import (
    CaseComparison,
    ComparisonReport,
    MetricComparison,
)
from orchestrator.comparisons.heat import metrics_of
from orchestrator.comparisons.rows import ORDER
from orchestrator.comparisons.sides import Side
from orchestrator.core.spreadsheets import csv_text
from orchestrator.core.units import format_change
from orchestrator.stats.comparison import Verdict

#: In Markdown: so many rows of what changed, and of what is open where nothing did.
MOST_CHANGED, MOST_OPEN = 30, 10
SYMBOLS: Mapping[str, str] = {
    "improved": "▲",
    "regressed": "▼",
    "equivalent": "=",
    "trivial": "≈",
    "inconclusive": "?",
}
_COLUMNS = (
    "verdict", "paired", "excluded_blocks", "suspect_blocks", "metric", "unit", "better", "primary",
    "metric_verdict", "baseline", "contender", "change", "low", "high", "margin", "blocks",
    "p_value", "q_value", "reasons",
)  # fmt: skip


def comparison_markdown(report: ComparisonReport, address: str) -> str:
    """The verdict, what to know before believing it, and the cases that matter.

    What people wrote stands in code, where it mentions nobody and links to nothing. `address`: of
    the whole comparison.
    """
    parts = [
        f"**{SYMBOLS[report.verdict]} {report.verdict}**: {_plain(report.summary)}",
        _sides_line(report),
    ]
    parts += [f"> {_plain(note)}" for note in report.notes if not report.paired][:1]
    if report.mismatches:
        parts.append("\n".join(_mismatch_lines(report)))
    told = _told(report)
    if told:
        parts.append(_table(report, told))
    parts.append(_rest(report, told))
    parts.append(f"[All numbers, with their intervals and trials]({_link(address)})")
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison_csv(report: ComparisonReport) -> str:
    """A row for each metric of each case; without a metric where nothing could be compared.

    Changes are shares: 0.05 is 5 %. Values are in the unit that stands beside.
    """
    names = list(dict.fromkeys(name for case in report.cases for name in case.case.parameters))
    heads = ["case", "case_key", "contender_case", *(f"axis_{name}" for name in names),
             "host", "profile", "contender_host", *_COLUMNS]  # fmt: skip
    rows = (row for case in report.cases for row in _csv_rows(case, names))
    return csv_text([heads, *rows])


def comparison_json(report: ComparisonReport, address: str) -> str:
    return json.dumps(_data(report, address), indent=1, ensure_ascii=False) + "\n"


def _sides_line(report: ComparisonReport) -> str:
    baseline, contender = report.sides
    benchmark = f"{report.benchmark.project.slug}/{report.benchmark.slug}"
    return (
        f"{_side(contender)} against {_side(baseline)}, benchmark {_code(benchmark)}, "
        f"{len(report.cases)} case{'' if len(report.cases) == 1 else 's'} on {_hosts(report)}."
    )


def _side(side: Side) -> str:
    words = side.words()
    words.pop("commit")
    more = ", ".join(f"{name} {_code(value)}" for name, value in words.items())
    return f"{_code(side.commit.short_sha)} ({more})" if more else _code(side.commit.short_sha)


def _hosts(report: ComparisonReport) -> str:
    names = sorted({each.name for case in report.cases for each in _both_hosts(case)})
    told = ", ".join(_code(name) for name in names[:6])
    return f"{told} and {len(names) - 6} more" if len(names) > 6 else told


def _both_hosts(case: CaseComparison) -> tuple[Any, Any]:
    return case.host, case.contender_host


def _mismatch_lines(report: ComparisonReport) -> Iterator[str]:
    yield "> **Not like for like:**"
    for each in report.mismatches:
        yield (f"> - {_plain(each.what)}: {_code(each.baseline)} against "
               f"{_code(each.contender)}: {_plain(each.reason)}.")  # fmt: skip


def _told(report: ComparisonReport) -> list[CaseComparison]:
    """What changed; where nothing did, what is open."""
    changed = [case for case in report.cases if ORDER[case.verdict] <= ORDER[Verdict.IMPROVED]]
    if changed:
        return changed[:MOST_CHANGED]
    return [case for case in report.cases if case.verdict == Verdict.INCONCLUSIVE][:MOST_OPEN]


def _table(report: ComparisonReport, told: Sequence[CaseComparison]) -> str:
    metrics = metrics_of(report)
    several = len({each.name for case in told for each in _both_hosts(case)}) > 1
    heads = ["", "Case", *(["Host"] if several else []), *map(_plain, metrics.values())]
    rule = ["---"] * (len(heads) - len(metrics)) + ["--:"] * len(metrics)
    lines = [heads, rule, *(_line(case, metrics, several) for case in told)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(case: CaseComparison, metrics: Mapping[str, str], several: bool) -> list[str]:
    found = {each.key: each for each in case.metrics}
    label, host = case.case.label, case.host.name
    if case.contender_case.pk != case.case.pk:
        label += f" → {case.contender_case.label}"
    if case.contender_host.pk != case.host.pk:
        host += f" → {case.contender_host.name}"
    cells = [_number(found.get(key)) for key in metrics]
    return [f"{SYMBOLS[case.verdict]} {case.verdict}", _code(label),
            *([_code(host)] if several else []), *cells]  # fmt: skip


def _number(metric: MetricComparison | None) -> str:
    if metric is None or metric.change is None:
        return "–"
    text = format_change(metric.change)
    if metric.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        text = f"**{text}**"
    if metric.interval is None:
        return text
    return f"{text} ({' to '.join(format_change(end) for end in metric.interval)})"


def _rest(report: ComparisonReport, told: Sequence[CaseComparison]) -> str:
    rest = Counter(case.verdict for case in report.cases)
    rest.subtract(case.verdict for case in told)
    said = [f"{rest[verdict]} {verdict}" for verdict in ORDER if rest[verdict]]
    return f"{'And' if told else 'Cases'}: {', '.join(said)}." if said else ""


def _plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#~&" else sign for sign in flat)


def _code(text: str) -> str:
    """As code, which also in a table is one cell."""
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{flat}`" if flat else "–"


def _link(address: str) -> str:
    return address.replace("(", "%28").replace(")", "%29").replace(" ", "%20")


def _csv_rows(case: CaseComparison, names: Sequence[str]) -> Iterator[list[object]]:
    places = [case.case.parameters.get(name) for name in names]
    first = [
        case.case.label,
        case.case.key,
        case.contender_case.label,
        *(None if value is None else shown_value(value) for value in places),
        case.host.name,
        case.host.profile,
        case.contender_host.name,
        case.verdict,
        case.paired,
        case.excluded_blocks,
        case.suspect_blocks,
    ]
    for metric in case.metrics:
        yield [*first, *_metric_data(metric).values()]
    if not case.metrics:
        yield [*first, *[None] * (len(_COLUMNS) - 4)]


def _metric_data(metric: MetricComparison) -> dict[str, Any]:
    """Named as in `_COLUMNS`, in their order."""
    low, high = metric.interval or (None, None)
    return {
        "metric": metric.key,
        "unit": metric.unit,
        "better": metric.better,
        "primary": metric.primary,
        "metric_verdict": metric.verdict,
        "baseline": metric.baseline,
        "contender": metric.contender,
        "change": metric.change,
        "low": low,
        "high": high,
        "margin": metric.margin,
        "blocks": metric.blocks,
        "p_value": metric.p_value,
        "q_value": metric.q_value,
        "reasons": "; ".join(metric.reasons),
    }


def _data(report: ComparisonReport, address: str) -> dict[str, Any]:
    """As the API names it (docs/api/openapi.json), without the latency distributions."""
    return {
        "project": report.benchmark.project.slug,
        "benchmark": report.benchmark.slug,
        "sides": [side.words() for side in report.sides],
        "verdict": report.verdict,
        "summary": report.summary,
        "paired": report.paired,
        "tests": report.tests,
        "changed": report.changed,
        "survived": report.survived,
        "notes": list(report.notes),
        "mismatches": [
            {"what": each.what, "baseline": each.baseline, "contender": each.contender,
             "reason": each.reason}
            for each in report.mismatches
        ],
        "web_url": address,
        "cases": [_case_data(case) for case in report.cases],
    }  # fmt: skip


def _case_data(case: CaseComparison) -> dict[str, Any]:
    both = (("case", case.case), ("contender_case", case.contender_case))
    return {
        **{
            name: {"key": each.key, "label": each.label, "parameters": dict(each.parameters)}
            for name, each in both
        },
        "host": case.host.name,
        "contender_host": case.contender_host.name,
        "verdict": case.verdict,
        "paired": case.paired,
        "excluded_blocks": case.excluded_blocks,
        "suspect_blocks": case.suspect_blocks,
        "validity_issues": [
            {"code": each.code, "title": each.title, "trials": each.trials}
            for each in case.validity_issues
        ],
        "missing_blocks": case.missing_blocks,
        "missing_s": case.missing_s,
        "metrics": [_metric_json(metric) for metric in case.metrics],
    }


def _metric_json(metric: MetricComparison) -> dict[str, Any]:
    told = _metric_data(metric)
    told["verdict"] = told.pop("metric_verdict")
    told["interval"] = metric.interval
    return {**told, "reasons": list(metric.reasons), "needed_blocks": metric.needed_blocks}
