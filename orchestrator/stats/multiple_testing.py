"""Verdicts of many cases: a correction for their number, the verdicts, and a headline."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from orchestrator.stats.alpha_spending import ERROR_RATE, Spending
from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.paired import FEWEST_BLOCKS

_WORST_FIRST = {verdict: rank for rank, verdict in enumerate(Verdict)}
#: Verdicts of cases in the order of a report: failures and changes hide no open case, and are
#: not hidden by one.
REPORT_ORDER = (
    Verdict.BROKEN,
    Verdict.SATURATED,
    Verdict.REGRESSED,
    Verdict.FIXED,
    Verdict.IMPROVED,
    Verdict.INCONCLUSIVE,
    Verdict.TRIVIAL,
    Verdict.EQUIVALENT,
)
#: Verdicts that claim a change that matters.
CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)
_PROOFS = (Verdict.TRIVIAL, Verdict.EQUIVALENT)
_ONE_RUN = Spending()

#: case, metric
Cell = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The data of a one-sentence summary: the counts of verdicts, the worst first, and the cell.

    `cell` is the primary metric with the largest change among the `alike` ones with the verdict;
    None without one. `metrics`: the number of primary metrics, `open_metrics` of them are
    inconclusive.
    """

    verdict: Verdict
    cases: int
    counts: Mapping[Verdict, int]
    metrics: int
    open_metrics: int
    alike: int
    cell: Cell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixVerdict:
    """`cells`: verdicts of the primary metrics, with `q_values`; `cases`: the worst of each case.

    `changed`: cells that are improved or regressed on their own; `survived`: those that remain
    after the correction. `claim_threshold`: the largest p value, with the penalty of its case, with
    which one more would remain. `accepted_threshold`: the largest one of those that remain.
    """

    verdict: Verdict
    cases: Mapping[str, Verdict]
    cells: Mapping[Cell, Verdict]
    q_values: Mapping[Cell, float | None]
    changed: int
    survived: int
    claim_threshold: float
    accepted_threshold: float
    headline: Headline


def adjust(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini–Hochberg q values, in the given order; None stays None and is not counted.

    Raises ValueError for a p outside 0 to 1. Benjamini and Hochberg 1995.
    """
    known = [place for place, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[place] for place in known], dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p values must lie between 0 and 1")
    order = np.argsort(p)[::-1]
    ranks = np.arange(p.size, 0, -1)
    q = np.empty_like(p)
    q[order] = np.minimum.accumulate(np.minimum(p[order] * p.size / ranks, 1.0))
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(known, q.tolist(), strict=True):
        adjusted[place] = value
    return adjusted


def compute_claim_threshold(q_values: Sequence[float | None], rate: float = ERROR_RATE) -> float:
    """Return the largest p value with which one more test would be accepted at this rate."""
    return _compute_threshold(q_values, rate, more=1)


def compute_accepted_threshold(q_values: Sequence[float | None], rate: float = ERROR_RATE) -> float:
    """Return the largest p value of the accepted tests; without any, that of the first one."""
    return _compute_threshold(q_values, rate, more=0)


def _compute_threshold(q_values: Sequence[float | None], rate: float, more: int) -> float:
    known = [q for q in q_values if q is not None]
    family = max(1, len(known))
    accepted = sum(q <= rate for q in known)
    return rate * min(family, max(1, accepted + more)) / family


def find_worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that needs attention most; inconclusive without verdicts."""
    return min(verdicts, key=_WORST_FIRST.__getitem__, default=Verdict.INCONCLUSIVE)


def judge_matrix(
    cases: Mapping[str, Mapping[str, Comparison]],
    *,
    primary: Mapping[str, Collection[str]],
    false_discovery_rate: float = ERROR_RATE,
    spending: Mapping[str, Spending] = MappingProxyType({}),
) -> MatrixVerdict:
    """Judge all cases (case → metric → comparison) by their primary metrics alone.

    `primary`: case → its primary metrics.
    A change that does not survive Benjamini–Hochberg over case × primary metric becomes
    inconclusive, a trivial one equivalent. A case's verdict is the worst of its primary metrics,
    the whole verdict the worst of the cases; a case without any primary metric is inconclusive.
    `spending`: case → the verdicts on its blocks, by default those of one run with fixed rounds.
    """
    compared = {
        (case, metric): comparison
        for case, metrics in cases.items()
        for metric, comparison in metrics.items()
        if metric in primary[case]
    }
    spent = {case: spending.get(case, _ONE_RUN) for case in cases}
    q_values = _compute_q_values(compared, spent)
    cells = {
        cell: _correct_cell(comparison, q_values[cell], false_discovery_rate, spent[cell[0]])
        for cell, comparison in compared.items()
    }
    verdicts = _find_case_verdicts(cases, cells)
    adjusted = list(q_values.values())
    headline = build_headline(verdicts, cells, compared)
    return MatrixVerdict(
        verdict=headline.verdict,
        cases=verdicts,
        cells=cells,
        q_values=q_values,
        changed=sum(compared[cell].verdict in CLAIMS for cell in cells),
        survived=sum(verdict in CLAIMS for verdict in cells.values()),
        claim_threshold=compute_claim_threshold(adjusted, false_discovery_rate),
        accepted_threshold=compute_accepted_threshold(adjusted, false_discovery_rate),
        headline=headline,
    )


def _compute_q_values(
    compared: Mapping[Cell, Comparison], spent: Mapping[str, Spending]
) -> dict[Cell, float | None]:
    adjusted = adjust(
        [
            _scale_p_value(comparison, spent[case].penalty)
            for (case, _), comparison in compared.items()
        ]
    )
    return dict(zip(compared, adjusted, strict=True))


def _find_case_verdicts(cases: Iterable[str], cells: Mapping[Cell, Verdict]) -> dict[str, Verdict]:
    """Return the worst verdict of each case; inconclusive without a primary metric."""
    by_case: dict[str, list[Verdict]] = {case: [] for case in cases}
    for (case, _), verdict in cells.items():
        by_case[case].append(verdict)
    return {case: find_worst_verdict(verdicts) for case, verdicts in by_case.items()}


def _scale_p_value(comparison: Comparison, penalty: float) -> float | None:
    """Return None if the cell cannot be a change at any p: it must not count for the others."""
    if comparison.p_value is None or comparison.blocks < FEWEST_BLOCKS:
        return None
    return min(1.0, penalty * comparison.p_value)


def _correct_cell(
    comparison: Comparison, q_value: float | None, rate: float, spent: Spending
) -> Verdict:
    verdict = comparison.verdict
    unproven = (comparison.equivalence_p or 0.0) >= spent.equivalence_alpha
    if verdict in _PROOFS and unproven:
        return Verdict.INCONCLUSIVE
    return correct_verdict(verdict, is_certain=q_value is None or q_value <= rate)


def correct_verdict(verdict: Verdict, *, is_certain: bool) -> Verdict:
    """Return the verdict of one among many; `is_certain`: its difference is also significant there.

    Without that, a change may be chance, and a trivial one is only known to be within the margin.
    """
    if is_certain:
        return verdict
    if verdict is Verdict.TRIVIAL:
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE if verdict in CLAIMS else verdict


def build_headline(
    cases: Mapping[str, Verdict],
    cells: Mapping[Cell, Verdict],
    compared: Mapping[Cell, Comparison],
) -> Headline:
    """Return the headline of these verdicts; a verdict of failures names no cell."""
    verdict = min(cases.values(), key=REPORT_ORDER.index, default=Verdict.INCONCLUSIVE)
    candidates = [cell for cell, cell_verdict in cells.items() if cell_verdict is verdict]
    counted = Counter(cases.values())
    return Headline(
        verdict=verdict,
        cases=len(cases),
        counts={each: counted[each] for each in REPORT_ORDER if counted[each]},
        metrics=len(cells),
        open_metrics=sum(each is Verdict.INCONCLUSIVE for each in cells.values()),
        alike=len(candidates),
        cell=max(candidates, key=lambda cell: abs(compared[cell].change or 0.0), default=None),
    )
