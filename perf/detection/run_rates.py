"""How often simulated runs are right: false claims, power, intervals, sizes, and rounds.

Each run goes from its blocks to the headline (`simulated_runs`). The tests of others get the same
trials (`alternatives`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from orchestrator.stats.comparison import Verdict
from orchestrator.stats.multiple_testing import CLAIMS, Cell
from perf.detection.alternatives import Claims, claim_as_alternatives
from perf.detection.simulated_runs import Ending, JudgedRun, judge_run
from perf.detection.simulated_trials import (
    PlantedChange,
    SimulatedTrials,
    Variation,
    draw_trials,
)

_STREAM = 72
_UNCHANGED = (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
_UNIMPORTANT = (Verdict.TRIVIAL, Verdict.EQUIVALENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A kind of run; `metrics` is a key of `simulated_trials.METRICS`.

    `weight`: its number of runs, relative to others with or without a change. `compared`: the
    alternatives get its trials.
    """

    variation: Variation
    cases: int = 20
    metrics: str = "3"
    ending: Ending = "decided"
    change: PlantedChange = field(default_factory=PlantedChange)
    weight: float = 1.0
    compared: bool = True

    @property
    def with_alternatives(self) -> bool:
        """Return whether the alternatives get its trials; for other endings they are the same."""
        return self.compared and self.ending in ("decided", "one run a side")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRates:
    """What a method claims about the deciding metrics.

    `false_claims`: the share of runs that claim a change which does not exist, or in the wrong
    direction. `found`: the share of changed cases with the right claim. `exaggeration`: the mean of
    claimed / true change, as logs, minus 1, over the right claims. `rounds`: the mean of a case.
    None: there is no change or no claim.
    """

    false_claims: float
    found: float | None
    exaggeration: float | None
    rounds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRates:
    """Shares over the runs of a scenario, for Pitwall, and the claims of the `alternatives`.

    - `headlined`: runs whose headline says that anything changed
    - `named`: runs in which a deciding metric is regressed, improved or trivial
    - `labelled`: runs in which a metric for information without a change is regressed or improved
    - `open_cases`: cases that are inconclusive
    - `unimportant`: deciding metrics with a change that are called trivial or equivalent
    - `covered`, `covered_claims`: intervals of all deciding metrics, and of the right claims, that
      contain the true change
    - `headline_covered`, `headline_exaggeration`: the same of headlines that name a changed case
    """

    runs: int
    claims: ClaimRates
    headlined: float
    named: float
    labelled: float
    open_cases: float
    unimportant: float | None
    covered: float | None
    covered_claims: float | None
    headline_covered: float | None
    headline_exaggeration: float | None
    alternatives: Mapping[str, ClaimRates]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClaimCounts:
    """The claims of one run."""

    false: bool
    found: Sequence[bool]
    exaggerations: Sequence[float]
    rounds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunCounts:
    """The outcome of one run; the fields are those of `RunRates`, with a value for each item."""

    claims: _ClaimCounts
    headlined: bool
    named: bool
    labelled: bool
    open_cases: float
    unimportant: Sequence[bool]
    covered: Sequence[bool]
    covered_claims: Sequence[bool]
    headline_covered: Sequence[bool]
    headline_exaggeration: Sequence[float]
    alternatives: Mapping[str, _ClaimCounts]


def measure_rates(scenario: Scenario, number: int, seed: int) -> RunRates:
    """Return the rates of `number` runs. Scenarios that differ in the ending get equal trials."""
    drawn = (scenario.variation, scenario.cases, scenario.metrics, scenario.change)
    rng = np.random.default_rng([seed, _STREAM, zlib.crc32(repr(drawn).encode())])
    return _summarise([_simulate(rng, scenario) for _ in range(number)])


def _simulate(rng: np.random.Generator, scenario: Scenario) -> _RunCounts:
    trials = draw_trials(
        rng,
        cases=scenario.cases,
        kind=scenario.metrics,
        variation=scenario.variation,
        change=scenario.change,
    )
    run = judge_run(trials, scenario.ending)
    others = claim_as_alternatives(trials) if scenario.with_alternatives else {}
    counts = {name: _count_claims(trials, claims) for name, claims in others.items()}
    return _count_run(trials, run, counts)


def _count_run(
    trials: SimulatedTrials, run: JudgedRun, alternatives: Mapping[str, _ClaimCounts]
) -> _RunCounts:
    matrix, truth = run.matrix, _list_truth(trials)
    right = [cell for cell in matrix.cells if _is_right_claim(run, cell, truth[cell])]
    named = [cell for cell in right if cell == matrix.headline.cell]
    return _RunCounts(
        claims=_count_claims(trials, _list_claims(trials, run)),
        headlined=matrix.verdict not in _UNCHANGED,
        named=any(each not in _UNCHANGED for each in matrix.cells.values()),
        labelled=any(each in CLAIMS and not truth[cell] for cell, each in run.others.cells.items()),
        open_cases=list(matrix.cases.values()).count(Verdict.INCONCLUSIVE) / len(matrix.cases),
        unimportant=[each in _UNIMPORTANT for cell, each in matrix.cells.items() if truth[cell]],
        covered=_list_covered(run, matrix.cells, truth),
        covered_claims=_list_covered(run, right, truth),
        headline_covered=_list_covered(run, named, truth),
        headline_exaggeration=[
            math.log1p(_get_claimed_change(run, cell)) / truth[cell] - 1 for cell in named
        ],
        alternatives=alternatives,
    )


def _list_truth(trials: SimulatedTrials) -> Mapping[Cell, float]:
    """Return the true change of each cell, as a log."""
    return {
        (str(case), metric.key): float(change)
        for case, changes in enumerate(trials.truth)
        for metric, change in zip(trials.metrics, changes, strict=True)
    }


def _is_right_claim(run: JudgedRun, cell: Cell, truth: float) -> bool:
    return run.matrix.cells[cell] in CLAIMS and truth * _get_claimed_change(run, cell) > 0


def _list_covered(run: JudgedRun, cells: Iterable[Cell], truth: Mapping[Cell, float]) -> list[bool]:
    """Return whether each interval of these cells contains the true change."""
    comparisons = [(run.compared[case][key], truth[case, key]) for case, key in cells]
    return [
        each.low <= math.expm1(change) <= each.high
        for each, change in comparisons
        if each.low is not None and each.high is not None
    ]


def _get_claimed_change(run: JudgedRun, cell: Cell) -> float:
    """Return the change that the page claims: corrected for the selection, if it is known."""
    comparison = run.compared[cell[0]][cell[1]]
    change = comparison.change if comparison.likely_change is None else comparison.likely_change
    return change or 0.0


def _list_claims(trials: SimulatedTrials, run: JudgedRun) -> Claims:
    """Return the claims of Pitwall, in the form of those of the alternatives."""
    keys = [metric.key for metric in trials.metrics[: trials.primary]]
    cases = list(run.compared)
    changes = [[_get_claimed_change(run, (case, key)) for key in keys] for case in cases]
    return Claims(
        np.array([[run.matrix.cells[case, key] in CLAIMS for key in keys] for case in cases]),
        np.log1p(np.array(changes)),
        fmean(run.blocks.values()),
    )


def _count_claims(trials: SimulatedTrials, claims: Claims) -> _ClaimCounts:
    truth = trials.truth[:, : trials.primary]
    right = claims.cells & (claims.changes * truth > 0)
    return _ClaimCounts(
        false=bool((claims.cells & ~right).any()),
        found=np.asarray(right.any(axis=1))[truth.any(axis=1)].tolist(),
        exaggerations=(claims.changes[right] / truth[right] - 1).tolist(),
        rounds=claims.rounds,
    )


def _summarise(counts: Sequence[_RunCounts]) -> RunRates:
    return RunRates(
        runs=len(counts),
        claims=_summarise_claims([each.claims for each in counts]),
        headlined=fmean(each.headlined for each in counts),
        named=fmean(each.named for each in counts),
        labelled=fmean(each.labelled for each in counts),
        open_cases=fmean(each.open_cases for each in counts),
        unimportant=_average(each.unimportant for each in counts),
        covered=_average(each.covered for each in counts),
        covered_claims=_average(each.covered_claims for each in counts),
        headline_covered=_average(each.headline_covered for each in counts),
        headline_exaggeration=_average(each.headline_exaggeration for each in counts),
        alternatives={
            name: _summarise_claims([each.alternatives[name] for each in counts])
            for name in counts[0].alternatives
        },
    )


def _summarise_claims(counts: Sequence[_ClaimCounts]) -> ClaimRates:
    return ClaimRates(
        false_claims=fmean(each.false for each in counts),
        found=_average(each.found for each in counts),
        exaggeration=_average(each.exaggerations for each in counts),
        rounds=fmean(each.rounds for each in counts),
    )


def _average(values: Iterable[Sequence[float]]) -> float | None:
    """Return the mean of all values; None if there are none."""
    known = [each for run in values for each in run]
    return fmean(known) if known else None
