"""The verdict of a case follows from its values, its failures, and its excluded blocks."""

from collections.abc import Mapping

import pytest

from orchestrator.stats.block_outcomes import BlockOutcomes, Outcome, judge_outcomes
from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.conclusion import CaseBlocks, conclude_case, conclude_matrix
from orchestrator.stats.multiple_testing import MatrixVerdict, judge_matrix

BROKEN = BlockOutcomes(verdict=Verdict.BROKEN)
FIXED = BlockOutcomes(verdict=Verdict.FIXED)
#: Six blocks that only the contender loses.
UNEVEN = judge_outcomes([(Outcome.COUNTS, Outcome.VOID)] * 6 + [(Outcome.COUNTS,) * 2] * 20)
SPREAD = (0.99, 1.01, 1.0, 1.005, 0.995, 1.002)


@pytest.mark.parametrize(
    ("values", "blocks", "verdict"),
    [
        ("equivalent", CaseBlocks(complete=17, excluded=3, outcomes=BROKEN), "broken"),
        ("regressed", CaseBlocks(complete=7, excluded=3, outcomes=BROKEN), "broken"),
        ("inconclusive", CaseBlocks(excluded=10, outcomes=BROKEN), "broken"),
        ("inconclusive", CaseBlocks(excluded=10, outcomes=FIXED), "fixed"),
        ("equivalent", CaseBlocks(complete=17, excluded=3, outcomes=FIXED), "fixed"),
        ("regressed", CaseBlocks(complete=17, excluded=3, outcomes=FIXED), "regressed"),
        ("equivalent", CaseBlocks(complete=7, excluded=3), "equivalent"),
        ("equivalent", CaseBlocks(complete=6, excluded=3), "inconclusive"),
        ("regressed", CaseBlocks(complete=6, excluded=3), "inconclusive"),
        ("equivalent", CaseBlocks(complete=20, excluded=6, outcomes=UNEVEN), "inconclusive"),
        ("trivial", CaseBlocks(complete=20, excluded=6, outcomes=UNEVEN), "inconclusive"),
        ("regressed", CaseBlocks(complete=20, excluded=6, outcomes=UNEVEN), "regressed"),
        ("improved", CaseBlocks(complete=20, excluded=6, outcomes=UNEVEN), "improved"),
    ],
)
def test_failures_are_worse_than_values_and_lost_blocks_prove_little(
    values: str, blocks: CaseBlocks, verdict: str
) -> None:
    assert conclude_case(Verdict(values), blocks) == verdict


def compare_shifted(change: float) -> Comparison:
    contender = [100 * (1 + change) * one for one in SPREAD]
    return compare_blocks([100.0] * len(SPREAD), contender, better="higher", margin=0.03)


def conclude(changes: Mapping[str, float], blocks: Mapping[str, CaseBlocks]) -> MatrixVerdict:
    """`changes`: case → change of its rate; the other cases of `blocks` have no values."""
    compared = {case: {"rate": compare_shifted(change)} for case, change in changes.items()}
    matrix = judge_matrix(compared, primary=dict.fromkeys(compared, ("rate",)))
    return conclude_matrix(matrix, compared, blocks)


def test_every_case_enters_the_verdict() -> None:
    equal = {str(number): 0.0 for number in range(17)}
    broken = {str(number): CaseBlocks(excluded=10, outcomes=BROKEN) for number in range(17, 20)}
    matrix = conclude(equal, {**dict.fromkeys(equal, CaseBlocks(complete=6)), **broken})
    assert matrix.verdict == "broken"
    assert (matrix.headline.cases, matrix.headline.cell) == (20, None)
    assert matrix.headline.counts == {"equivalent": 17, "broken": 3}


def test_an_improvement_is_not_hidden_by_a_case_without_data() -> None:
    changes = {str(number): 0.2 for number in range(15)}
    blocks = {**dict.fromkeys(changes, CaseBlocks(complete=6)), "open": CaseBlocks()}
    matrix = conclude(changes, blocks)
    assert (matrix.verdict, matrix.cases["open"]) == ("improved", "inconclusive")
    assert matrix.headline.counts == {"improved": 15, "inconclusive": 1}


def test_one_case_without_data_is_no_proof_that_nothing_changed() -> None:
    blocks = {"equal": CaseBlocks(complete=6), "open": CaseBlocks()}
    assert conclude({"equal": 0.0}, blocks).verdict == "inconclusive"


def test_the_metrics_of_a_case_with_many_excluded_blocks_have_no_verdict_either() -> None:
    blocks = {"slow": CaseBlocks(complete=6, excluded=4), "fine": CaseBlocks(complete=6)}
    matrix = conclude({"slow": -0.2, "fine": -0.2}, blocks)
    assert matrix.cells == {("slow", "rate"): "inconclusive", ("fine", "rate"): "regressed"}
    assert matrix.headline.cell == ("fine", "rate")
