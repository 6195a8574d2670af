"""Interim analyses: the planned block counts at which a comparison may reach a verdict.

The plan and the alphas below keep the error rate of all analyses together below 0.05. A part of it
is kept for later runs of the same commits (`alpha_spending`).
"""

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import Comparison, Verdict

#: Clean blocks at which a verdict may be reached.
INTERIM_BLOCKS = (5, 7, 10, 15, 20)
_SPENDING = Spending(analyses=len(INTERIM_BLOCKS))
#: The alphas of one analysis: of a change, and of equivalence. All analyses together detect a
#: change that does not exist with a probability below 0.04, and call one of just the margin
#: unimportant with one below 0.05 (`make bench-detection`, docs/error-rates.md).
INTERIM_ALPHA = _SPENDING.alpha
INTERIM_EQUIVALENCE_ALPHA = _SPENDING.equivalence_alpha
#: Factor for the p value of the last of several analyses when it is compared with others.
PENALTY = _SPENDING.penalty


def compute_next_analysis(
    comparison: Comparison, planned: tuple[int, ...] = INTERIM_BLOCKS
) -> int | None:
    """The number of blocks at the next analysis; None if measuring may stop.

    It may stop when a verdict is reached that is not fragile, or when no analysis is left.
    """
    decided = comparison.verdict is not Verdict.INCONCLUSIVE and not comparison.fragile
    if decided:
        return None
    return find_analysis_after(comparison.blocks, planned)


def find_analysis_after(blocks: int, planned: tuple[int, ...] = INTERIM_BLOCKS) -> int | None:
    """The next planned analysis of a case with this many clean blocks; None after the last."""
    return next((count for count in planned if count > blocks), None)


def is_analysis_due(blocks: int, analysed_at: int, *, last: bool) -> bool:
    """Return whether a case with `blocks` clean blocks is due for an analysis.

    `analysed_at`: its clean blocks at the last analysis, 0 before the first. A missed analysis is
    done once; none is repeated. `last`: the case will not be measured further.
    """
    planned = find_analysis_after(analysed_at)
    if planned is None or blocks <= analysed_at:
        return False
    return blocks >= planned or (last and blocks >= INTERIM_BLOCKS[0])
