"""The search for a culprit by noisy answers: simulated with fixed seeds."""

import math

import numpy as np
import pytest

from orchestrator.stats.bisection import (
    FEWEST_BLOCKS,
    Answer,
    Culprit,
    NextMeasurement,
    compute_culprit_chances,
    compute_step_blocks,
    find_credible_range,
    has_effect,
    plan_step,
    read_answer,
)
from orchestrator.stats.build_variance import ENOUGH_BUILDS
from perf.detection.build_noise import Variation, compare_builds, measure_bisections

BLOCKS = 7


def build_answer(index: int, difference: float, error: float, blocks: int) -> Answer:
    return Answer(
        index=index, difference=difference, error=error, blocks=blocks, degrees=blocks - 1
    )


def confirmation_run(
    rng: np.random.Generator, effect: float, noise: float, index: int = 0
) -> Answer:
    """What a confirmation run of seven blocks says where the truth is `effect`."""
    values = rng.normal(effect, noise * math.sqrt(2), BLOCKS)
    error = float(values.std(ddof=1)) / math.sqrt(BLOCKS)
    return build_answer(index, float(values.mean()), error, BLOCKS)


def search(
    rng: np.random.Generator,
    commits: int,
    culprit: int,
    *,
    effect: float = 0.05,
    noise: float = 0.02,
    unbuildable: frozenset[int] = frozenset(),
) -> tuple[Culprit, int]:
    """The outcome and the steps of a whole search."""
    whole = confirmation_run(rng, math.log1p(effect), noise)
    while whole.difference < 3 * whole.error:
        # It would not have been confirmed, and so not searched for.
        whole = confirmation_run(rng, math.log1p(effect), noise)
    answers: list[Answer] = []
    skipped: set[int] = set()
    for steps in range(100):
        step = plan_step(
            commits,
            answers,
            effect=whole.difference,
            effect_error=whole.error,
            unbuildable=skipped,
        )
        if isinstance(step, Culprit):
            return step, steps
        if step.index in unbuildable:
            skipped.add(step.index)
            continue
        truth = math.log1p(effect) if step.index >= culprit else 0.0
        answers.append(confirmation_run(rng, truth, noise, step.index))
    raise AssertionError("it never ends")


@pytest.mark.parametrize("commits", [2, 8, 64])
def test_bisection_finds_the_right_commit_in_few_steps(commits: int) -> None:
    rng = np.random.default_rng(commits)
    right, steps = 0, []
    for _ in range(300):
        culprit = int(rng.integers(commits))
        result, taken = search(rng, commits, culprit)
        right += (result.first, result.last) == (culprit, culprit)
        steps.append(taken)
    assert right >= 0.95 * 300
    assert np.mean(steps) <= math.log2(commits) + 2.5


def test_more_noise_takes_more_steps_and_no_more_errors() -> None:
    rng = np.random.default_rng(5)
    outcomes = [search(rng, 16, culprit % 16, noise=0.03) for culprit in range(200)]
    right = sum(result.first == result.last == n % 16 for n, (result, _) in enumerate(outcomes))
    assert right >= 0.95 * 200


def test_commits_that_cannot_be_built_are_skipped() -> None:
    rng = np.random.default_rng(7)
    result, _ = search(rng, 16, 3, unbuildable=frozenset({7, 8, 9}))
    assert (result.first, result.last) == (3, 3)
    result, _ = search(rng, 16, 8, unbuildable=frozenset({7, 8, 9}))
    assert (result.first, result.last) == (7, 10)


def test_without_buildable_commits_a_range_is_named() -> None:
    culprit = plan_step(4, [], effect=0.05, effect_error=0.01, unbuildable={0, 1, 2})
    assert culprit == Culprit(first=0, last=3, probability=1.0)


def test_a_single_commit_is_the_culprit_without_a_run() -> None:
    assert plan_step(1, [], effect=0.05, effect_error=0.01) == Culprit(
        first=0, last=0, probability=1.0
    )


def test_bisection_asks_in_the_middle_first() -> None:
    assert plan_step(9, [], effect=-0.05, effect_error=0.01) in (
        NextMeasurement(index=3),
        NextMeasurement(index=4),
    )


def test_a_result_supports_the_nearer_side_in_both_directions() -> None:
    for sign in (1, -1):
        near = build_answer(0, sign * 0.045, 0.01, 7)
        far = build_answer(0, sign * 0.004, 0.01, 7)
        assert has_effect(near, effect=sign * 0.05, effect_error=0.01)
        assert not has_effect(far, effect=sign * 0.05, effect_error=0.01)


def test_the_same_answer_twice_weighs_more() -> None:
    answer = build_answer(3, 0.035, 0.015, 5)
    once = compute_culprit_chances(8, [answer], effect=0.05, effect_error=0.01)
    twice = compute_culprit_chances(8, [answer, answer], effect=0.05, effect_error=0.01)
    assert sum(twice[:4]) > sum(once[:4]) > 0.5


def test_the_number_of_blocks_follows_from_the_noise() -> None:
    assert compute_step_blocks(1.0, 0.01, 10) == FEWEST_BLOCKS == 2 * ENOUGH_BUILDS
    assert compute_step_blocks(0.05, 0.01, 10) == 15
    assert compute_step_blocks(-0.05, 0.01, 10) == 15
    assert compute_step_blocks(0.02, 0.02, 10) == compute_step_blocks(0.0, 0.02, 10) == 20


def test_no_single_result_is_a_proof() -> None:
    certain = build_answer(3, 0.05, 0.0, 20)
    chances = compute_culprit_chances(8, [certain], effect=0.05, effect_error=0.0)
    assert 0 < sum(chances[4:]) < 0.01


def test_many_answers_about_a_commit_are_no_proof_either() -> None:
    """What is wrong with a commit, such as a bad build of another repository, is in all of them."""
    answers = [build_answer(3, 0.05, 0.005, 10)] * 20
    chances = compute_culprit_chances(8, answers, effect=0.05, effect_error=0.005)
    assert sum(chances[4:]) == pytest.approx(0.005)
    others = [build_answer(5, 0.05, 0.005, 10)] * 20
    two = compute_culprit_chances(8, answers + others, effect=0.05, effect_error=0.005)
    assert sum(two[6:]) < 0.0001


def test_a_commit_with_all_its_evidence_is_not_measured_again() -> None:
    bad = [build_answer(7, 0.05, 0.005, 10)] * 3
    good = [build_answer(6, 0.0, 0.005, 10)] * 3
    step = plan_step(100, [*bad, *good], effect=0.05, effect_error=0.005)
    assert isinstance(step, NextMeasurement)
    assert step.index not in (6, 7)


def test_if_no_commit_can_tell_more_the_likeliest_is_named() -> None:
    answers = [build_answer(index, 0.05, 0.005, 10) for index in range(2)] * 20
    step = plan_step(3, answers, effect=0.05, effect_error=0.005)
    assert isinstance(step, Culprit)
    assert (step.first, step.last) == (0, 0)


def test_a_comparison_is_an_answer_with_its_degrees_of_freedom() -> None:
    rng = np.random.default_rng(68)
    found = compare_builds(rng, Variation(0.001, 0.02, 5), math.log1p(0.05), rounds=10)
    answer = read_answer(4, found)
    assert answer is not None
    assert (answer.index, answer.blocks) == (4, 10)
    assert answer.degrees == pytest.approx(4)
    assert answer.difference == pytest.approx(math.log1p(found.change or 0))
    single = compare_builds(rng, Variation(0.001, 0.02, 1), 0.0, rounds=1)
    assert read_answer(4, single) is None


@pytest.mark.parametrize("between", [0.0, 0.015])
def test_the_difference_between_builds_names_no_wrong_commit(between: float) -> None:
    """With one build in each step, 30 % of these names are wrong (`make bench-detection`)."""
    rng = np.random.default_rng([68, round(1000 * between)])
    found = measure_bisections(rng, 160, Variation(0.02, between, ENOUGH_BUILDS))
    assert found.wrong < 0.05
    assert found.undecided < 0.05
    assert found.steps < 8


def test_the_credible_run_is_the_shortest_that_holds_enough() -> None:
    assert find_credible_range((0.01, 0.02, 0.6, 0.36, 0.01)) == range(2, 4)
    assert find_credible_range((1.0,)) == range(1)
