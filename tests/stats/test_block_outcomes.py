"""Failures of a side in its blocks: when they are a verdict, and when they forbid a proof."""

import math

import pytest
from scipy.stats import binomtest

from orchestrator.stats.block_outcomes import (
    BlockPair,
    Outcome,
    compute_mcnemar_p,
    has_too_many_excluded,
    judge_outcomes,
)

LETTERS = {
    "c": Outcome.COUNTS,
    "s": Outcome.SATURATED,
    "b": Outcome.BROKEN,
    "v": Outcome.VOID,
}


def blocks(text: str) -> list[BlockPair]:
    """`cc cb`: two blocks, the contender is broken in the second."""
    return [(LETTERS[before], LETTERS[after]) for before, after in text.split()]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", None),
        ("cc cc cc cc cc", None),
        ("cb cb cb cc cc cc cc cc", "broken"),
        ("cb cb cc cc cc cc cc cc", None),
        ("cs cs cs cc cc", "saturated"),
        ("cs cb cs cc cc", "saturated"),
        ("cb cb cb cs cs cs", "broken"),
        # Fewer than three blocks: all of them must fail.
        ("cb", "broken"),
        ("cb cb", "broken"),
        ("cb cc", None),
        ("cs", "saturated"),
        # Void blocks say nothing: only one block remains.
        ("cb vb cv vv", "broken"),
        ("vb vb vb", None),
        # The reverse is no regression.
        ("bc bc bc cc cc", "fixed"),
        ("sc", "fixed"),
        # Both sides fail.
        ("bb bb bb bb", None),
        ("ss sb bs", None),
        # The contender crashes where the baseline was only saturated.
        ("sb sb sb", "broken"),
        # It no longer crashes, but fails still.
        ("bs bs bs", None),
        # Both fail at times: three against one may be chance, ten against one is not.
        ("cb cb cb bc cc cc", None),
        (" ".join(["cb"] * 10 + ["bc"]), "broken"),
        (" ".join(["bc"] * 10 + ["cb"]), "fixed"),
    ],
)
def test_a_side_that_fails_alone_is_a_verdict(text: str, verdict: str | None) -> None:
    assert judge_outcomes(blocks(text)).verdict == verdict


def test_failures_and_lost_blocks_are_counted() -> None:
    found = judge_outcomes(blocks("cb cv bc ss vc cc"))
    assert (found.blocks, found.failures, found.lost) == (6, (2, 2), (3, 3))
    assert found.lost_p == 1.0


@pytest.mark.parametrize(
    ("hits", "discordant"), [(0, 0), (0, 4), (3, 3), (6, 6), (7, 10), (60, 99)]
)
def test_the_p_value_is_that_of_the_binomial_test(hits: int, discordant: int) -> None:
    expected = binomtest(hits, discordant, 0.5, alternative="greater").pvalue if discordant else 1.0
    assert compute_mcnemar_p(hits, discordant) == pytest.approx(expected)


def test_the_sides_differ_from_six_blocks_on_that_only_one_of_them_loses() -> None:
    assert not judge_outcomes(blocks("cv cv cv cv cv cc cc cc cc cc")).differ
    assert judge_outcomes(blocks("cv cv cv cv cv cv cc cc cc cc")).differ
    assert judge_outcomes(blocks("vc vc vc vc vc vc cc cc cc cc")).differ
    assert not judge_outcomes(blocks("vv vv vv vv vv vv cc cc cc cc")).differ


@pytest.mark.parametrize(("excluded", "complete", "too_many"), [(3, 7, False), (4, 7, True)])
def test_three_of_ten_blocks_may_be_excluded(excluded: int, complete: int, too_many: bool) -> None:
    assert has_too_many_excluded(excluded, complete) is too_many


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.23, 0.5])
def test_equal_failure_rates_are_rarely_a_verdict(share: float) -> None:
    """Computed exactly for ten blocks: the sides fail independently with the same probability."""
    chance = 0.0
    alone, neither = share * (1 - share), 1 - 2 * share * (1 - share)
    for ours in range(11):
        for theirs in range(11 - ours):
            rest = 10 - ours - theirs
            pairs = blocks(" ".join(["cb"] * ours + ["bc"] * theirs + ["cc"] * rest))
            if judge_outcomes(pairs).verdict == "broken":
                ways = math.comb(10, ours) * math.comb(10 - ours, theirs)
                chance += ways * alone ** (ours + theirs) * neither**rest
    assert chance < 0.053
