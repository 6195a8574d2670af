"""The report of a run on this machine, in the format of comparisons in the API."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.comparisons.compare import choose_deciding_metrics
from orchestrator.comparisons.reasons import summary_of
from orchestrator.comparisons.sides import Side
from orchestrator.dispatch.here.reading import Measured
from orchestrator.dispatch.here.rows import Rows
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.runs.models import Until
from orchestrator.stats.comparison import Comparison
from orchestrator.stats.interim import PENALTY
from orchestrator.stats.many import ToCompare, compare_many
from orchestrator.stats.matrix import MatrixVerdict, judge_matrix
from orchestrator.stats.summary import summarise

#: Of a case: for each side, the results of its rounds, in order.
Sides = Sequence[Sequence[Measured]]
NOT_CARRIED_OUT = Measured(failure="not carried out")


def report_of(rows: Rows, found: Mapping[str, Measured], notes: Sequence[str]) -> dict[str, Any]:
    """Build the report; `found` is by trial id. With one commit `contender` is null."""
    sides = {case.key: _sides(rows, found, case) for case in rows.cases}
    told = [*notes, *_validity_notes(sides.values()), *_void(sides.values())]
    told.append("Server and load generator shared one machine and talked over loopback.")
    commits = [variant.commit for variant in rows.variants]
    common = {"benchmark": rows.spec.title, "notes": told, "mismatches": []}
    if len(commits) == 1:
        return {**common, **_alone(rows, sides, commits[0])}
    return {**common, **_compared(rows, sides, commits)}


def _sides(rows: Rows, found: Mapping[str, Measured], case: Case) -> Sides:
    sides = []
    for variant in rows.variants:
        own = [each for each in rows.trials if each.case is case and each.variant is variant]
        sides.append([found.get(str(each.pk), NOT_CARRIED_OUT) for each in own])
    return sides


def _compared(rows: Rows, sides: Mapping[str, Sides], commits: list[Commit]) -> dict[str, Any]:
    compared = {key: _comparisons(each) for key, each in sides.items()}
    matrix = judge_matrix(
        compared,
        primary=choose_deciding_metrics(primary_of(rows.spec), compared),
        counted=1.0 if rows.until == Until.ROUNDS else PENALTY,
    )
    return {
        "baseline": _commit(commits[0]),
        "contender": _commit(commits[1]),
        "verdict": matrix.verdict,
        "summary": summary_of(matrix.headline, (Side(commit=commits[0]), Side(commit=commits[1]))),
        "cases": [
            {
                **_case(rows, case),
                "verdict": matrix.cases[case.key],
                "excluded_blocks": sum(not all(pair) for pair in _blocks(sides[case.key])),
                "metrics": list(_metrics(case.key, compared[case.key], matrix)),
            }
            for case in rows.cases
        ],
    }


def _comparisons(sides: Sides) -> dict[str, Comparison]:
    """Compare every judged metric that both sides have, block by block."""
    blocks = list(_blocks(sides))
    asked: list[tuple[str, ToCompare]] = []
    for info in _judged(sides):
        pairs = [
            tuple(each.readings.get(info.key) if each else None for each in pair) for pair in blocks
        ]
        before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if all(value is None or value >= 0 for value in (*before, *after)):
            one = ToCompare(
                baseline=before, contender=after, better=info.better, margin=info.margin
            )
            asked.append((info.key, one))
    found = compare_many([one for _, one in asked])
    return {key: comparison for (key, _), comparison in zip(asked, found, strict=True)}


def _blocks(sides: Sides) -> Iterator[tuple[Measured | None, ...]]:
    """Yield each round's pair; a block is excluded if one of its trials does not count."""
    for block in zip(*sides, strict=True):
        counts = all(each.counts for each in block)
        yield block if counts else (None,) * len(block)


def _judged(sides: Sides) -> list[Metric]:
    keys = {key for side in sides for each in side if each.counts for key in each.readings}
    return [info for info in metrics_of(keys) if not info.informational]


def _metrics(
    case: str, compared: Mapping[str, Comparison], matrix: MatrixVerdict
) -> Iterator[dict[str, Any]]:
    for info in metrics_of(compared.keys()):
        found = compared[info.key]
        cell = (case, info.key)
        known = found.low is not None and found.high is not None
        yield {
            **_named(info),
            "primary": cell in matrix.cells,
            "margin": info.margin,
            "baseline": found.baseline,
            "contender": found.contender,
            "change": found.change,
            "interval": [found.low, found.high] if known else None,
            "blocks": found.blocks,
            "p_value": found.p_value,
            "q_value": matrix.q_values.get(cell),
            "needed_blocks": found.needed_blocks,
            "verdict": matrix.cells.get(cell, found.verdict),
            "reasons": list(found.reasons),
        }


def _alone(rows: Rows, sides: Mapping[str, Sides], commit: Commit) -> dict[str, Any]:
    trials = sum(each.counts for of_case in sides.values() for each in of_case[0])
    return {
        "baseline": _commit(commit),
        "contender": None,
        "verdict": None,
        "summary": f"{commit.short_sha}, measured alone: {trials} valid trials.",
        "cases": [
            {**_case(rows, case), "metrics": list(_values(sides[case.key][0], rows))}
            for case in rows.cases
        ],
    }


def _values(trials: Sequence[Measured], rows: Rows) -> Iterator[dict[str, Any]]:
    counted = [each for each in trials if each.counts]
    primary = primary_of(rows.spec)
    for info in _judged([counted]):
        summary = summarise([each.readings.get(info.key) for each in counted])
        if summary is not None:
            known = summary.low is not None
            yield {
                **_named(info),
                "primary": info.key in primary,
                "value": summary.mean,
                "interval": [summary.low, summary.high] if known else None,
                "trials": summary.n,
            }


def _validity_notes(cases: Any) -> Iterator[str]:
    """Yield each validity reason once, with the number of its trials."""
    every = [each for sides in cases for side in sides for each in side]
    counted = Counter(reason.partition(":")[0] for each in every for reason in set(each.reasons))
    texts = {reason.partition(":")[0]: reason for each in every for reason in each.reasons}
    for code, count in counted.most_common():
        yield f"{count} of {len(every)} trials: {texts[code]}"


def _void(cases: Any) -> Iterator[str]:
    blocks = [all(pair) for sides in cases for pair in _blocks(sides)]
    if not all(blocks):
        excluded = f"{blocks.count(False)} of {len(blocks)} blocks were excluded"
        yield f"{excluded}: a trial failed or is invalid."


def _case(rows: Rows, case: Case) -> dict[str, Any]:
    assert rows.job.host is not None
    named = {"key": case.key, "label": case.label, "parameters": case.parameters}
    return {"case": named, "host": rows.job.host.name}


def _commit(commit: Commit) -> dict[str, str]:
    return {"commit": commit.sha, "short": commit.short_sha}


def _named(info: Metric) -> dict[str, str]:
    return {"metric": info.key, "title": info.title, "unit": info.unit, "better": info.better}
