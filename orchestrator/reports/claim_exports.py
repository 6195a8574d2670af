"""The judged claims of a report as text, and in Markdown, CSV and JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cli.pitwall.units import format_items, format_number, format_percent
from orchestrator.reports.claims import RATIO, Conclusion, JudgedClaim, JudgedClaims
from orchestrator.reports.hardware import HEADS, UNKNOWN, Machine
from orchestrator.reports.markdown_tables import render_line, render_rule
from orchestrator.reports.provenance import Provenance
from orchestrator.reports.report_builder import Report

TITLE = "Do the claims hold?"
_HEADINGS = ("Claim", "Source", "Published", "Measured", "Conclusion")
_CSV_HEADINGS = (
    "claim", "source", "host", "published", "measured", "low", "high", "unit", "suspect",
    "conclusion", "reason",
)  # fmt: skip
_NOT_STATED = "not stated"


class Difference(NamedTuple):
    """What differs between the original and the measurements here."""

    topic: str
    original: str
    here: str


def format_measured(one: JudgedClaim) -> str:
    """Return "1.04 times (1.01 to 1.07)"; without a value, why there is none."""
    if one.value is None:
        return one.reason or "unknown"
    text = f"{format_number(one.value, digits=3)} {one.unit}".strip()
    if one.low is not None and one.high is not None:
        low, high = (format_number(bound, digits=3) for bound in (one.low, one.high))
        text += f" ({low} to {high})"
    if one.comparisons > 1:
        sides = f"{one.cases} against {one.than}" if one.than else one.cases
        text += f", 1 of {one.comparisons} comparisons: {sides}"
    return f"{text} !" if one.suspect else text


def format_conclusion(one: JudgedClaim) -> str:
    """Return the conclusion, and without an interval why it is open."""
    if one.conclusion is Conclusion.OPEN and one.value is not None and one.reason:
        return f"{one.conclusion}: {one.reason}"
    return str(one.conclusion)


def build_claim_notes(claims: JudgedClaims) -> tuple[str, ...]:
    """Return how the claims were decided."""
    notes = []
    if claims.comparisons:
        notes.append(
            f"Decided from intervals of {format_percent(claims.confidence, decimals=2)}, never "
            f"from the estimates. Those of {format_items(claims.comparisons, 'comparison')} are "
            "right together at 95 % (Bonferroni)."
        )
    notes.append("Cannot tell: the interval contains the limit, or there is none.")
    if any(each.comparisons > 1 for each in claims.claims):
        notes.append(
            "Of several comparisons of a claim all must hold; the one that decides is shown."
        )
    notes += _build_ratio_notes(claims)
    if any(each.suspect for each in claims.claims):
        notes.append("!: suspect trials are among them.")
    return tuple(notes)


def _build_ratio_notes(claims: JudgedClaims) -> list[str]:
    """Return which of the measured ratios are paired; empty without one."""
    ratios = [each for each in claims.claims if each.unit == RATIO and each.value is not None]
    paired = sum(each.paired for each in ratios)
    if not ratios:
        return []
    if not paired:
        return ["A ratio divides the geometric means of the runs; its sides are not paired."]
    if paired == len(ratios):
        return ["Ratios are paired: they are those within common blocks."]
    return [
        f"{paired} of {len(ratios)} ratios are paired, by common blocks. The others divide the "
        "geometric means of the runs."
    ]


def list_differences(report: Report, record: Provenance) -> list[Difference]:
    """Return what differs from the original: hardware, versions, size of the measurement."""
    facts = dict(record.facts)
    machines = [_describe_machine(each) for each in record.machines if not each.published]
    programs = dict.fromkeys(each for host in record.hosts for each in host.required)
    original = report.spec.original
    size = [
        facts[title] for title in ("Load of the definition", "Trials", "Measured") if title in facts
    ]
    tools = _remove_digests(facts.get("Load tool", ""))
    here = {
        "Hardware": (original.hardware, "; ".join(machines)),
        "Versions": (original.versions, "; ".join(filter(None, [tools, *programs]))),
        "Size": (original.size, "; ".join(size)),
    }
    return [
        Difference(topic, before or _NOT_STATED, now or "not shown")
        for topic, (before, now) in here.items()
    ]


def _describe_machine(machine: Machine) -> str:
    facts = zip(HEADS[1:], machine.texts, strict=True)
    known = (f"{head} {text}" for head, text in facts if text != UNKNOWN)
    return f"{machine.name}: {', '.join(known)}"


def _remove_digests(text: str) -> str:
    words = text.split()
    drop = {n + each for n, word in enumerate(words) if word == "SHA-256" for each in (0, 1)}
    return " ".join(word for n, word in enumerate(words) if n not in drop)


def render_claims(report: Report, record: Provenance) -> list[str]:
    """Return the paragraphs of the section in Markdown; none without claims."""
    judged = report.claims
    if not judged.claims:
        return []
    return [
        f"## {TITLE}",
        _render_table(judged.claims),
        "\n".join(f"- {note}" for note in build_claim_notes(judged)),
        "### What differs from the original",
        _render_differences(list_differences(report, record)),
    ]


def render_conclusions(report: Report) -> str:
    """Return the claims with their conclusions as a list in Markdown; empty without claims."""
    return "\n".join(
        f"- **{_capitalise(each.conclusion)}**: {each.claim.claim}{_name_host(report, each)}"
        for each in report.claims.claims
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name_host(report: Report, one: JudgedClaim) -> str:
    return f" ({one.host})" if _has_hosts(report.claims.claims) else ""


def _has_hosts(claims: Sequence[JudgedClaim]) -> bool:
    return len({each.host for each in claims if each.host}) > 1


def _render_table(claims: Sequence[JudgedClaim]) -> str:
    hosts = _has_hosts(claims)
    heads = [*_HEADINGS[:2], *(["Host"] if hosts else []), *_HEADINGS[2:]]
    lines = [render_line(heads), render_rule(len(heads))]
    for each in claims:
        cells = [each.claim.claim, each.claim.source, *([each.host] if hosts else [])]
        cells += [each.claim.published or "–", format_measured(each)]
        lines.append(render_line([*cells, f"**{format_conclusion(each)}**"]))
    return "\n".join(lines)


def _render_differences(differences: Sequence[Difference]) -> str:
    lines = [render_line(["", "Original", "Here"]), render_rule(3)]
    return "\n".join([*lines, *(render_line(each) for each in differences)])


def iterate_claim_rows(claims: JudgedClaims) -> Iterator[Sequence[object]]:
    """Yield the rows of a CSV file, with their headings; none without claims."""
    if claims.claims:
        yield _CSV_HEADINGS
    for each in claims.claims:
        numbers = [each.value, each.low, each.high, each.unit, each.suspect]
        words = [each.claim.claim, each.claim.source, each.host, each.claim.published]
        yield [*words, *numbers, str(each.conclusion), each.reason]


def export_claims(report: Report, record: Provenance) -> dict[str, Any]:
    """Return the claims and the differences as plain data."""
    judged = report.claims
    return {
        "confidence": judged.confidence,
        "comparisons": judged.comparisons,
        "claims": [_export_claim(each) for each in judged.claims],
        "differences": [
            each._asdict() for each in (list_differences(report, record) if judged.claims else [])
        ],
    }


def _export_claim(one: JudgedClaim) -> dict[str, Any]:
    return {
        "claim": one.claim.claim,
        "source": one.claim.source,
        "published": one.claim.published,
        "metric": one.claim.metric,
        "relation": one.claim.relation,
        "host": one.host,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "unit": one.unit,
        "paired": one.paired,
        "suspect": one.suspect,
        "comparisons": one.comparisons,
        "conclusion": str(one.conclusion),
        "reason": one.reason,
    }
