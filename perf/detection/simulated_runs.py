"""A simulated run from its blocks to the headline, by the functions that Pitwall ships."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import ALPHA, EQUIVALENCE_ALPHA, Comparison
from orchestrator.stats.conclusion import CaseBlocks, conclude_matrix
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
)
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import MatrixVerdict, judge_matrix
from orchestrator.stats.selective_inference import adjust_claims
from orchestrator.stats.stopping import CaseData, decide_cases
from orchestrator.stats.unpaired import compare_unpaired
from perf.detection.simulated_trials import ROUNDS_OF_A_RUN, SimulatedTrials

#: How the run ends: as in a run's form, or each side was measured in one or three runs alone.
Ending = Literal["rounds", "decided", "screened", "one run a side", "three runs a side"]
_RUNS_OF_A_SIDE: Mapping[Ending, int] = {"one run a side": 1, "three runs a side": 3}

#: Case → metric → comparison; cases are named by their index, as in `judge_matrix`.
Compared = Mapping[str, Mapping[str, Comparison]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """`matrix`: verdicts of the metrics that decide; `others`: of those for information.

    `blocks`: of each case, when it ended.
    """

    compared: Compared
    matrix: MatrixVerdict
    others: MatrixVerdict
    blocks: Mapping[str, int]


def judge_run(trials: SimulatedTrials, ending: Ending) -> JudgedRun:
    """Measure until this ending, and judge the run as its page does."""
    blocks = _count_blocks(trials, ending)
    if ending in _RUNS_OF_A_SIDE:
        compared = _compare_sides(trials, _RUNS_OF_A_SIDE[ending])
    else:
        compared = _compare_cases(trials, blocks, range(len(trials.metrics)))
    keys = [metric.key for metric in trials.metrics]
    interim = ending in ("decided", "screened")
    spending = dict.fromkeys(blocks, Spending(analyses=len(INTERIM_BLOCKS) if interim else 1))
    primary, informing = keys[: trials.primary], keys[trials.primary :]
    matrix = judge_matrix(compared, primary=dict.fromkeys(blocks, primary), spending=spending)
    matrix = conclude_matrix(
        matrix, compared, {case: CaseBlocks(complete=count) for case, count in blocks.items()}
    )
    others = judge_matrix(compared, primary=dict.fromkeys(blocks, informing), spending=spending)
    for family in (matrix, others):
        compared = adjust_claims(compared, family, spending)
    return JudgedRun(compared=compared, matrix=matrix, others=others, blocks=blocks)


def _count_blocks(trials: SimulatedTrials, ending: Ending) -> Mapping[str, int]:
    cases = map(str, range(len(trials.values)))
    if ending in ("decided", "screened"):
        return _measure_until_decided(trials, list(cases), screen=ending == "screened")
    return dict.fromkeys(cases, ROUNDS_OF_A_RUN * _RUNS_OF_A_SIDE.get(ending, 1))


def _measure_until_decided(
    trials: SimulatedTrials, cases: Collection[str], *, screen: bool
) -> Mapping[str, int]:
    """Return the blocks of each case when it is decided, futile, or has no analysis left."""
    newest: dict[str, CaseData] = {}
    open_ = list(cases)
    for blocks in INTERIM_BLOCKS:
        seen = _analyse_cases(trials, dict.fromkeys(open_, blocks))
        others = [each.p_values for case, each in newest.items() if case not in seen]
        newest |= seen
        decisions = decide_cases(
            seen,
            elsewhere=list(chain.from_iterable(others)),
            cells=len(cases) * trials.primary,
            screen=screen,
            estimate=False,
        )
        open_ = [
            case for case, decision in decisions.items() if not decision.decided | decision.futile
        ]
    return {case: newest[case].blocks for case in cases}


def _analyse_cases(trials: SimulatedTrials, blocks: Mapping[str, int]) -> dict[str, CaseData]:
    compared = _compare_cases(
        trials,
        blocks,
        range(trials.primary),
        alpha=INTERIM_ALPHA,
        equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA,
    )
    return {
        case: CaseData(blocks=blocks[case], excluded=0, comparisons=tuple(metrics.values()))
        for case, metrics in compared.items()
    }


def _compare_cases(
    trials: SimulatedTrials,
    blocks: Mapping[str, int],
    metrics: Iterable[int],
    *,
    alpha: float = ALPHA,
    equivalence_alpha: float = EQUIVALENCE_ALPHA,
) -> Compared:
    """Compare these metrics in the first blocks of each case."""
    cells = [(case, metric) for case in blocks for metric in metrics]
    inputs = [_build_input(trials, int(case), metric, blocks[case]) for case, metric in cells]
    results = compare_many(inputs, alpha=alpha, equivalence_alpha=equivalence_alpha)
    compared: dict[str, dict[str, Comparison]] = {case: {} for case in blocks}
    for (case, metric), result in zip(cells, results, strict=True):
        compared[case][trials.metrics[metric].key] = result
    return compared


def _build_input(trials: SimulatedTrials, case: int, metric: int, blocks: int) -> ComparisonInput:
    before, after = trials.values[case, metric, :, :blocks].tolist()
    return ComparisonInput(
        baseline=before,
        contender=after,
        better=trials.metrics[metric].better,
        margin=trials.metrics[metric].margin,
        orders=trials.orders[case, :blocks].tolist(),
    )


def _compare_sides(trials: SimulatedTrials, runs: int) -> Compared:
    """Compare sides that share no block; each was measured in so many runs."""
    cases, metrics = trials.values.shape[:2]
    taken = trials.values[..., : runs * ROUNDS_OF_A_RUN]
    sides = taken.reshape(cases, metrics, 2, runs, ROUNDS_OF_A_RUN).tolist()
    return {
        str(at): {
            metric.key: compare_unpaired(*pair, better=metric.better, margin=metric.margin)
            for metric, pair in zip(trials.metrics, case, strict=True)
        }
        for at, case in enumerate(sides)
    }
