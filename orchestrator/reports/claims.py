"""Judges the claims of an original report by own measurements. Pure.

A claim is decided from an interval, never from the estimate. The intervals of all comparisons of a
report are right together at 95 % (Bonferroni), so no number of claims makes one hold by chance.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, product
from typing import NamedTuple

from orchestrator.reports.claim_spec import Claim
from orchestrator.reports.pivot_cells import CellValue, read_cell
from orchestrator.reports.pivot_columns import select_observations
from orchestrator.reports.pivot_model import WORDS, Observation
from orchestrator.reports.report_spec import Measure
from orchestrator.reports.spec_fields import find_known_metric
from orchestrator.reports.units import choose_unit, scale
from orchestrator.stats.contests import change_in_contest
from orchestrator.stats.estimates import (
    Estimate,
    MeanEstimate,
    change_against,
    compute_exp,
    estimate,
)
from orchestrator.stats.summary import compute_t_quantile
from orchestrator.stats.unpaired import FEWEST_RUNS

#: The probability that any of the intervals of a report is wrong.
ERROR_RATE = 0.05
#: More comparisons of a report are not made: two wide selections have the product of their cases.
MOST_COMPARISONS = 1000

#: The unit of a comparison of two measurements.
RATIO = "times"
_FEW_RUNS = f"fewer than {FEWEST_RUNS} runs, so the noise between runs is not known"


class Conclusion(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaim:
    """A claim on one host. `cases` and `than` name the sides of the shown comparison.

    Of several `comparisons`, all must hold, and the one that decides is shown. `value` has the
    interval from `low` to `high`, in `unit`; a ratio has the unit `times`. They are None without an
    estimate, or without an interval. `paired`: a ratio of values in common blocks of a contest.
    `reason`: why the claim cannot be decided.
    """

    claim: Claim
    host: str
    conclusion: Conclusion
    comparisons: int
    cases: str = ""
    than: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    paired: bool = False
    suspect: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaims:
    """All claims of a report. `confidence`: of each interval; `comparisons`: how many there are."""

    claims: tuple[JudgedClaim, ...] = ()
    comparisons: int = 0
    confidence: float = 1 - ERROR_RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    """One comparison: the quantity to compare with `bound`, in the metric's own unit or a ratio.

    `tested` is the estimate as a log; None without an interval, for `reason`.
    """

    cases: str
    than: str = ""
    value: float | None = None
    tested: MeanEstimate | None = None
    paired: bool = False
    bound: float = 1.0
    suspect: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A claim on one host with its comparisons; without any, `reason` says why."""

    claim: Claim
    host: str
    estimates: tuple[_Estimate, ...] = ()
    reason: str = ""


class _Frame(NamedTuple):
    """The commits and the axes of a report, the path of a claim in it, and its most comparisons."""

    commits: Sequence[str]
    axes: Sequence[str]
    path: str
    most: int


def judge_claims(
    claims: Sequence[Claim],
    observations: Sequence[Observation],
    *,
    commits: Sequence[str],
    axes: Sequence[str],
) -> JudgedClaims:
    """Judge each claim on each host, at the newest of `commits` (short hashes, newest first).

    The values of `axes` name a case. InvalidRequestError, with the path, if an expression has an
    unknown name.
    """
    measured = [each for each in observations if not each.is_published]
    tasks: list[_Task] = []
    left = MOST_COMPARISONS
    for number, claim in enumerate(claims):
        frame = _Frame(commits, axes, f"claims[{number}]", left)
        tasks += _build_tasks(claim, measured, frame)
        left = MOST_COMPARISONS - sum(len(task.estimates) for task in tasks)
    count = sum(each.tested is not None for task in tasks for each in task.estimates)
    confidence = 1 - ERROR_RATE / max(1, count)
    return JudgedClaims(
        claims=tuple(_judge_task(task, confidence) for task in tasks),
        comparisons=count,
        confidence=confidence,
    )


def _build_tasks(claim: Claim, measured: Sequence[Observation], frame: _Frame) -> Iterator[_Task]:
    at, before = [*frame.commits, "", ""][:2]
    chosen = select_observations(measured, claim.cases, f"{frame.path}.cases")
    mine = _select(chosen, "commit", at)
    others: list[Observation] = []
    if claim.than:
        others = select_observations(measured, claim.than, f"{frame.path}.than")
        others = _select(others, "commit", at)
    elif claim.previous_commit and before:
        others = _select(chosen, "commit", before)
    hosts = dict.fromkeys(each.get_value("host") for each in mine) or {"": None}
    for host in hosts:
        sides = _select(mine, "host", host), _select(others, "host", host)
        task = _build_task(claim, host, sides, frame)
        frame = frame._replace(most=frame.most - len(task.estimates))
        yield task


def _select(observations: Sequence[Observation], dimension: str, value: str) -> list[Observation]:
    return [each for each in observations if each.get_value(dimension) == value]


def _build_task(
    claim: Claim,
    host: str,
    sides: tuple[Sequence[Observation], Sequence[Observation]],
    frame: _Frame,
) -> _Task:
    pairs = list(islice(_pair_up(claim, *sides), frame.most + 1))
    if len(pairs) > frame.most:
        reason = (
            f"the claims of a report have more than {MOST_COMPARISONS} comparisons: let cases and "
            "than select fewer"
        )
        return _Task(claim=claim, host=host, reason=reason)
    if not pairs:
        missing = "an earlier commit was not measured" if claim.previous_commit else "no such case"
        return _Task(claim=claim, host=host, reason=missing)
    return _Task(
        claim=claim,
        host=host,
        estimates=tuple(_estimate(claim, one, other, frame.axes) for one, other in pairs),
    )


def _pair_up(
    claim: Claim, mine: Sequence[Observation], others: Sequence[Observation]
) -> Iterator[tuple[Observation, Observation | None]]:
    """Yield the sides of each comparison; a case with a value has no other one."""
    if not claim.is_ratio:
        yield from ((each, None) for each in mine)
        return
    if claim.previous_commit:
        before = {_get_case_key(each): each for each in others}
        same = ((each, before.get(_get_case_key(each))) for each in mine)
        yield from ((one, other) for one, other in same if other is not None)
        return
    yield from ((one, other) for one, other in product(mine, others) if one is not other)


def _get_case_key(seen: Observation) -> Hashable:
    """Return what identifies a case on its host, at whatever commit."""
    return frozenset((name, value) for name, value in seen.place.items() if name != "commit")


def _estimate(
    claim: Claim, one: Observation, other: Observation | None, axes: Sequence[str]
) -> _Estimate:
    measure = Measure(metric=claim.metric)
    first = read_cell([one], measure)
    second = read_cell([other], measure) if other else None
    blank = _Estimate(
        cases=_name_case(one, axes),
        than=_name_case(other, axes) if other else "",
        bound=_read_bound(claim),
        suspect=first.cell.suspect + (second.cell.suspect if second else 0),
    )
    for side in filter(None, (first, second)):
        if side.value is None:
            words = dict.fromkeys(filter(None, (WORDS[side.cell.kind], side.cell.reason)))
            return replace(blank, reason=": ".join(words))
    result = _compute(first, second)
    if result is None:
        return replace(blank, reason="the other side is zero")
    few = min(side.cell.runs for side in (first, second) if side) < FEWEST_RUNS
    reason = "" if result.tested else _FEW_RUNS if few else "a value is zero, which has no ratio"
    return replace(
        blank, value=result.value, tested=result.tested, paired=result.paired, reason=reason
    )


def _compute(first: CellValue, second: CellValue | None) -> Estimate | None:
    """Return the value or the ratio, and its test; None if there is no ratio.

    A ratio within a contest is that of the common blocks, as in `compute_relative`.
    """
    assert first.value is not None
    if second is None:
        alone = estimate(first.runs, "mean")
        tested = alone.tested if alone else None
        return Estimate(value=first.value, low=None, high=None, n=first.cell.trials, tested=tested)
    assert second.value is not None
    change = change_against(first.value, first.runs, second.value, second.runs, are_means=True)
    if change is None:
        return None
    sides = first.cell.entry, second.cell.entry
    change = change_in_contest(*sides, change.value, are_means=True) or change
    return replace(change, value=1 + change.value)


def _name_case(seen: Observation, axes: Sequence[str]) -> str:
    return ", ".join(filter(None, map(seen.get_value, axes)))


def _read_bound(claim: Claim) -> float:
    """Return what a claim compares with, in the metric's own unit or as a ratio."""
    if claim.value is None:
        return claim.times
    return claim.value / scale(_get_own_unit(claim), _get_shown_unit(claim))


def _get_own_unit(claim: Claim) -> str:
    info = find_known_metric(claim.metric)
    return info.unit if info else ""


def _get_shown_unit(claim: Claim) -> str:
    return choose_unit(_get_own_unit(claim)) if claim.unit is None else claim.unit


def _judge_task(task: _Task, confidence: float) -> JudgedClaim:
    """Show the comparison that decides: all must hold, so one that fails, else an open one."""
    judged = [_judge(task, each, confidence) for each in task.estimates]
    if judged:
        order = (Conclusion.FAILS, Conclusion.OPEN, Conclusion.HOLDS)
        return min(judged, key=lambda each: order.index(each.conclusion))
    return JudgedClaim(
        claim=task.claim,
        host=task.host,
        conclusion=Conclusion.OPEN,
        comparisons=0,
        reason=task.reason,
    )


def _judge(task: _Task, one: _Estimate, confidence: float) -> JudgedClaim:
    claim, conclusion, low, high = task.claim, Conclusion.OPEN, None, None
    if one.tested is not None:
        reach = compute_t_quantile(confidence, one.tested.degrees) * one.tested.error
        low, high = compute_exp(one.tested.mean - reach), compute_exp(one.tested.mean + reach)
        conclusion = _decide(claim, low, high, one.bound)
    unit = RATIO if claim.is_ratio else _get_shown_unit(claim)
    factor = 1.0 if claim.is_ratio else scale(_get_own_unit(claim), unit)
    several = len(task.estimates) > 1
    return JudgedClaim(
        claim=claim,
        host=task.host,
        conclusion=conclusion,
        comparisons=len(task.estimates),
        cases=one.cases if several else "",
        than=one.than if several else "",
        value=_multiply(one.value, factor),
        low=_multiply(low, factor),
        high=_multiply(high, factor),
        unit=unit,
        paired=one.paired,
        suspect=one.suspect,
        reason=one.reason,
    )


def _multiply(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _decide(claim: Claim, low: float, high: float, bound: float) -> Conclusion:
    """Decide from the interval alone. Only an interval without a width can lie on the bound."""
    low, high = _remove_rounding(low, bound), _remove_rounding(high, bound)
    match claim.relation:
        case "greater":
            holds, fails = low > bound, high <= bound
        case "at_least":
            holds, fails = low >= bound, high < bound
        case "less":
            holds, fails = high < bound, low >= bound
        case "at_most":
            holds, fails = high <= bound, low > bound
        case "within":
            share = (claim.percent or 0.0) / 100
            least, most = bound * (1 - share), bound * (1 + share)
            holds, fails = least <= low and high <= most, high < least or low > most
    return Conclusion.HOLDS if holds else Conclusion.FAILS if fails else Conclusion.OPEN


def _remove_rounding(value: float, bound: float) -> float:
    """Return the bound for a value that differs only by the rounding of logarithms."""
    return bound if math.isclose(value, bound, rel_tol=1e-12) else value
