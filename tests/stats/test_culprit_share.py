"""Whether a named commit has all of the effect, or another one has a part of it."""

import numpy as np
import pytest

from orchestrator.stats.bisection import Answer
from orchestrator.stats.culprit_share import (
    Blame,
    CulpritShare,
    estimate_culprit_share,
    find_partial_level,
)
from perf.detection.culprits import measure_culprits


def answer(index: int, difference: float, error: float = 0.005) -> Answer:
    return Answer(index=index, difference=difference, error=error, blocks=10, degrees=8)


def estimate(culprit: int, answers: list[Answer], commits: int = 8) -> CulpritShare:
    return estimate_culprit_share(culprit, commits, answers, effect=0.08, effect_error=0.004)


def test_a_step_of_the_whole_effect_has_all_of_the_blame() -> None:
    share = estimate(4, [answer(3, 0.001), answer(4, 0.079)])
    assert share.share == pytest.approx(0.975)
    assert share.blame is Blame.ALL


def test_a_step_of_half_of_the_effect_has_some_of_the_blame() -> None:
    share = estimate(4, [answer(3, 0.0), answer(4, 0.04)])
    assert share.share == pytest.approx(0.5)
    assert share.blame is Blame.PART
    assert share.interval == pytest.approx((0.32, 0.68), abs=0.06)


def test_a_part_that_is_there_before_the_culprit_is_not_its_own() -> None:
    assert estimate(4, [answer(3, 0.04), answer(4, 0.08)]).blame is Blame.PART


def test_without_enough_precision_the_least_known_commit_is_measured_again() -> None:
    share = estimate(4, [answer(3, 0.0, 0.01), answer(4, 0.07, 0.03)])
    assert (share.blame, share.weakest) == (Blame.OPEN, 4)
    assert estimate(4, [answer(4, 0.08)]).weakest == 3, "nothing is known about it"


def test_repeated_measurements_of_a_commit_are_one_mean() -> None:
    once = estimate(4, [answer(3, 0.0), answer(4, 0.08)])
    twice = estimate(4, [answer(3, 0.0), answer(4, 0.06), answer(4, 0.1)])
    assert twice.share == pytest.approx(once.share)
    assert twice.error < once.error


def test_the_ends_of_the_path_need_no_measurement() -> None:
    first = estimate(0, [answer(0, 0.08)])
    assert (first.blame, first.weakest) == (Blame.ALL, 0)
    last = estimate(7, [answer(6, 0.0)])
    assert (last.share, last.blame) == (1.0, Blame.ALL)


def test_a_commit_between_two_culprits_has_a_part() -> None:
    effect = {"effect": 0.08, "effect_error": 0.004}
    partial = find_partial_level([answer(2, 0.001), answer(5, 0.04)], **effect)
    assert partial is not None
    assert partial.index == 5
    assert 0.2 < partial.interval[0] < 0.5 < partial.interval[1] < 0.8
    assert find_partial_level([answer(2, 0.001), answer(5, 0.079)], **effect) is None
    assert find_partial_level([answer(5, 0.04, 0.02)], **effect) is None, "not surely"
    falling = {"effect": -0.08, "effect_error": 0.004}
    assert find_partial_level([answer(5, -0.04)], **falling) is not None


def test_two_culprits_hardly_ever_blame_one() -> None:
    """`make bench-detection` measures this with more searches."""
    alone, _, half = measure_culprits(60, seed=3)
    assert alone.right >= 0.85
    assert half.blamed <= 0.1
    assert np.isfinite(alone.steps)
