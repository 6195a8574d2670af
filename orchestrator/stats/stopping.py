"""Decided cases of a matrix at an interim analysis, and the blocks that the others still need.

A case is decided when all its primary metrics are decided, against each contender. A change counts
only if it is also significant among all cells of the run (Benjamini and Hochberg). A p value that
suffices for one case alone would not suffice among hundreds, and a case that ended would get no
more data.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.block_outcomes import has_too_many_excluded
from orchestrator.stats.comparison import ALPHA, Comparison, Verdict
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
    PENALTY,
    find_analysis_after,
)
from orchestrator.stats.multiple_testing import (
    CLAIMS,
    adjust,
    compute_claim_threshold,
    correct_verdict,
    find_worst_verdict,
)
from orchestrator.stats.needed_blocks import (
    DecisionRule,
    NeededBlocks,
    estimate_needed_blocks,
    find_largest,
)

#: After this many blocks a screened case continues only if a metric has a p value below this.
SCREEN_BLOCKS = 7
SCREEN_P = 0.1
#: The assumed number of blocks of a case whose noise is unknown.
TYPICAL_BLOCKS = 10

Case = TypeVar("Case", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseData:
    """The data of one case in an analysis: its primary metrics against each contender.

    Only clean blocks, compared at the alphas of `interim`. `excluded`: blocks that were excluded.
    """

    blocks: int
    excluded: int
    comparisons: tuple[Comparison, ...]

    @property
    def p_values(self) -> tuple[float, ...]:
        return tuple(1.0 if each.p_value is None else each.p_value for each in self.comparisons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about a case in an analysis.

    `verdict` is the worst of its cells. `cell` is the index of the cell with that verdict, or of
    the cell that prevents a decision; None without cells. `futile`: stopped early, since there is
    no sign of a change. `needed`: the total blocks that would probably decide it; None for a
    decided case and if there is no estimate. `obstacle`: the reason why a case with a verdict is
    not decided.
    """

    decided: bool
    futile: bool
    verdict: Verdict
    cell: int | None
    needed: NeededBlocks | None
    obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksLeft:
    """The minimum, typical and maximum number of blocks that a case still takes."""

    least: int
    typical: int
    most: int


def decide_cases(
    seen: Mapping[Case, CaseData],
    *,
    elsewhere: Sequence[float] = (),
    cells: int = 0,
    screen: bool = False,
    estimate: bool = True,
) -> dict[Case, Decision]:
    """Decide the cases that are analysed now.

    `elsewhere`: the newest p values of the other cases of the run; `cells`: the number of cells of
    the run, including those without a p value yet. Without `estimate`, `needed` is None: no
    decision depends on it, and it takes most of the time.
    """
    bound = compute_belief_threshold(
        [*elsewhere, *(p for each in seen.values() for p in each.p_values)], cells
    )
    return {
        case: _decide(each, bound, screen=screen, estimate=estimate) for case, each in seen.items()
    }


def compute_belief_threshold(p_values: Sequence[float], cells: int) -> float:
    """Return the largest p value at which an analysis accepts a change among `cells` cells.

    Without such a p value, return the bound for the smallest one.
    """
    family = max(cells, len(p_values), 1)
    counted = [min(1.0, PENALTY * p) for p in p_values]
    q_values = adjust([*counted, *[1.0] * (family - len(counted))])
    return compute_claim_threshold(q_values) / PENALTY


def estimate_blocks_left(
    *, done: int, analysed_at: int, most: int, needed: int | None
) -> BlocksLeft:
    """Return the blocks left of a case with `done` clean blocks, analysed at `analysed_at`.

    It may have at most `most` more. `needed`: the total from its last analysis, if known.
    """
    following = find_analysis_after(analysed_at)
    least = most if following is None else min(most, max(0, following - done))
    wanted = needed if needed is not None else max(TYPICAL_BLOCKS, done + 1)
    analysis = next((each for each in INTERIM_BLOCKS if each >= wanted), INTERIM_BLOCKS[-1])
    return BlocksLeft(least=least, typical=min(most, max(least, analysis - done)), most=most)


def _decide(seen: CaseData, bound: float, *, screen: bool, estimate: bool) -> Decision:
    obstacles = [_find_obstacle(each, bound) for each in seen.comparisons]
    verdicts = [_correct_trivial(each, bound) for each in seen.comparisons]
    verdict = find_worst_verdict(verdicts)
    blocked = [at for at, why in enumerate(obstacles) if why]
    obstacle = _explain_too_many_excluded(seen) or next((why for why in obstacles if why), "")
    if not seen.comparisons:
        obstacle = "no primary metric was measured on both sides"
    decided = not obstacle
    estimated = estimate and not decided
    return Decision(
        decided=decided,
        futile=screen and not decided and _is_futile(seen),
        verdict=verdict,
        cell=blocked[0] if blocked else _find_worst_cell(seen.comparisons, verdicts, verdict),
        needed=_estimate_needed(seen, obstacles, bound) if estimated else None,
        obstacle=obstacle,
    )


def _explain_too_many_excluded(seen: CaseData) -> str:
    if not has_too_many_excluded(seen.excluded, seen.blocks):
        return ""
    return f"{seen.excluded} blocks are excluded, too many to trust the rest"


def _find_obstacle(cell: Comparison, bound: float) -> str:
    """Return why this cell is not decided; empty if it is."""
    if cell.blocks and cell.change is None:
        # A value of zero: no number of blocks gives the others a ratio.
        return ""
    if cell.verdict is Verdict.INCONCLUSIVE:
        return "; ".join(cell.reasons) or "nothing is proven yet"
    if cell.fragile:
        return "the robust estimate leads to another verdict"
    if cell.verdict in CLAIMS and (cell.p_value or 0.0) > bound:
        return "among so many cases a change of this size may be chance"
    return ""


def _is_futile(seen: CaseData) -> bool:
    return seen.blocks >= SCREEN_BLOCKS and min(seen.p_values, default=1.0) >= SCREEN_P


def _correct_trivial(cell: Comparison, bound: float) -> Verdict:
    """Return the verdict of the cell; whether a claim holds is the question of `_find_obstacle`."""
    is_certain = cell.verdict in CLAIMS or (cell.p_value or 0.0) <= bound
    return correct_verdict(cell.verdict, is_certain=is_certain)


def _find_worst_cell(
    cells: Sequence[Comparison], verdicts: Sequence[Verdict], verdict: Verdict
) -> int | None:
    places = [at for at, each in enumerate(verdicts) if each is verdict]
    return max(places, key=lambda at: abs(cells[at].change or 0.0), default=None)


def _estimate_needed(seen: CaseData, obstacles: Sequence[str], bound: float) -> NeededBlocks | None:
    rule = _build_next_rule(seen.blocks, bound)
    cells = zip(seen.comparisons, obstacles, strict=True)
    needed = estimate_needed_blocks([cell for cell, obstacle in cells if obstacle], rule)
    return find_largest(each for each in needed if each is not None)


def _build_next_rule(blocks: int, bound: float) -> DecisionRule:
    """Return the rule of the next analysis, or of another run after the last one."""
    if find_analysis_after(blocks) is not None:
        return DecisionRule(
            claim_alpha=min(INTERIM_ALPHA, bound), equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA
        )
    following = Spending().after_another_run()
    return DecisionRule(
        claim_alpha=min(ALPHA, bound * PENALTY / following.penalty),
        equivalence_alpha=following.equivalence_alpha,
    )
