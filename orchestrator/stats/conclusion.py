"""The verdict of each case and of a whole comparison, from tests of values and from failures.

The corrected tests of values (`judge_matrix`) know nothing of the blocks that do not count. A case
in which the contender fails is worse than any of its values. A case whose blocks are mostly
excluded, or excluded more often on one side, proves less than its values say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.stats.block_outcomes import BlockOutcomes, has_too_many_excluded
from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.multiple_testing import MatrixVerdict, build_headline

#: The verdicts for which a build fails.
FAILING = frozenset({Verdict.BROKEN, Verdict.SATURATED, Verdict.REGRESSED})
_UNCHANGED = frozenset({Verdict.EQUIVALENT, Verdict.TRIVIAL})


class Withheld(StrEnum):
    """Why the values of a case give no verdict, or no proof of equivalence."""

    TOO_MANY_EXCLUDED = "too_many_excluded"
    EXCLUSIONS_DIFFER = "exclusions_differ"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBlocks:
    """The blocks of a case: `complete` ones, `excluded` ones, and how its trials ended."""

    complete: int = 0
    excluded: int = 0
    outcomes: BlockOutcomes = field(default_factory=BlockOutcomes)

    def find_obstacle(self) -> Withheld | None:
        """Return why the complete blocks are no evidence, or prove no equivalence."""
        if has_too_many_excluded(self.excluded, self.complete):
            return Withheld.TOO_MANY_EXCLUDED
        return Withheld.EXCLUSIONS_DIFFER if self.outcomes.differ else None


def withhold_verdict(verdict: Verdict, obstacle: Withheld | None) -> Verdict:
    """Return the verdict that the values of a case still have with this obstacle."""
    if obstacle is Withheld.TOO_MANY_EXCLUDED:
        return Verdict.INCONCLUSIVE
    if obstacle is Withheld.EXCLUSIONS_DIFFER and verdict in _UNCHANGED:
        return Verdict.INCONCLUSIVE
    return verdict


def conclude_case(verdict: Verdict, blocks: CaseBlocks) -> Verdict:
    """Return the verdict of a case; `verdict` is that of its values."""
    failure = blocks.outcomes.verdict
    known = withhold_verdict(verdict, blocks.find_obstacle())
    if failure is None or (failure is Verdict.FIXED and known is Verdict.REGRESSED):
        return known
    return failure


def conclude_matrix(
    matrix: MatrixVerdict,
    compared: Mapping[str, Mapping[str, Comparison]],
    blocks: Mapping[str, CaseBlocks],
) -> MatrixVerdict:
    """Return the verdicts with those of failures and of excluded blocks.

    `blocks`: each case, also those without a comparison of values.
    """
    cells = withhold_cells(matrix, blocks).cells
    cases = {
        case: conclude_case(matrix.cases.get(case, Verdict.INCONCLUSIVE), each)
        for case, each in blocks.items()
    }
    comparisons = {cell: compared[cell[0]][cell[1]] for cell in cells}
    headline = build_headline(cases, cells, comparisons)
    return replace(matrix, verdict=headline.verdict, cases=cases, cells=cells, headline=headline)


def withhold_cells(matrix: MatrixVerdict, blocks: Mapping[str, CaseBlocks]) -> MatrixVerdict:
    """Return the verdicts of metrics without those that the excluded blocks do not allow."""
    obstacles = {case: each.find_obstacle() for case, each in blocks.items()}
    cells = {
        (case, metric): withhold_verdict(verdict, obstacles[case])
        for (case, metric), verdict in matrix.cells.items()
    }
    return replace(matrix, cells=cells)
