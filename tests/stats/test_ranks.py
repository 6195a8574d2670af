"""Intervals of ranks, from pairwise tests with Holm's correction."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from orchestrator.stats.estimates import MeanEstimate, estimate
from orchestrator.stats.ranks import (
    MOST_TESTED,
    RankInterval,
    compute_rank_intervals,
    compute_ranking,
)
from perf.detection.contests import SERVERS, simulate_ranking
from tests.stats.test_contests import enter


def compute_mean(values):
    """The mean of as many runs, of one trial each."""
    found = estimate([[value] for value in values], "mean")
    assert found is not None
    return found.tested


def rank_all(means, *, falling=True):
    key = (lambda each: each.mean) if falling else (lambda each: -each.mean)
    return compute_rank_intervals(sorted(means, key=key, reverse=True), falling=falling)


@pytest.mark.parametrize("seed", range(30))
def test_two_rows_are_ordered_if_welch_proves_it(seed):
    rng = np.random.default_rng(seed)
    one = np.exp(rng.normal(0.0, 0.02, 4))
    other = np.exp(rng.normal(0.05, 0.05, 6))
    proven = ttest_ind(np.log(one), np.log(other), equal_var=False).pvalue <= 0.05
    expected = [(1, 1), (2, 2)] if proven else [(1, 2), (1, 2)]
    assert rank_all([compute_mean(one), compute_mean(other)]) == expected
    assert rank_all([compute_mean(one), compute_mean(other)], falling=False) == expected


def test_a_row_without_an_interval_may_have_any_rank():
    fast, slow = (MeanEstimate(mean=mean, error=0.001, degrees=9) for mean in (5.0, 4.0))
    assert compute_rank_intervals([fast, None, slow], falling=True) == [(1, 2), (1, 3), (2, 3)]
    assert compute_rank_intervals([None, None], falling=True) == [(1, 2), (1, 2)]
    assert compute_rank_intervals([fast], falling=True) == [(1, 1)]
    assert compute_rank_intervals([], falling=True) == []


def test_holm_corrects_for_the_number_of_pairs():
    """|t| is 2.2 for neighbours: p is 0.04, enough for one pair, and too much for one of two."""
    error = 1 / np.sqrt(2)
    means = [MeanEstimate(mean=2.2 * at, error=error, degrees=10) for at in (2, 1, 0)]
    assert compute_rank_intervals(means[:2], falling=True) == [(1, 1), (2, 2)]
    # Only the outer pair, with |t| = 4.4, is sure.
    assert compute_rank_intervals(means, falling=True) == [(1, 2), (1, 3), (2, 3)]


def test_a_tested_mean_in_another_order_than_the_rows_proves_nothing():
    """Rows can be ranked by medians."""
    high, low = (MeanEstimate(mean=mean, error=0.01, degrees=9) for mean in (2.0, 1.0))
    assert compute_rank_intervals([low, high], falling=True) == [(1, 2), (1, 2)]


def test_rows_without_spread_are_ordered_by_their_values():
    exact = [MeanEstimate(mean=mean, error=0.0, degrees=2) for mean in (2.0, 1.0, 1.0)]
    assert compute_rank_intervals(exact, falling=True) == [(1, 1), (2, 3), (2, 3)]


def test_too_many_rows_are_not_tested():
    exact = [MeanEstimate(mean=-at, error=0.0, degrees=2) for at in range(MOST_TESTED + 1)]
    found = compute_rank_intervals(exact, falling=True)
    assert set(found) == {RankInterval(1, MOST_TESTED + 1)}
    assert compute_rank_intervals(exact[:MOST_TESTED], falling=True)[-1].best == MOST_TESTED


@pytest.mark.parametrize("spread", [0.0, 0.02])
def test_all_intervals_of_a_table_hold_together(spread):
    """The true ranks are within all intervals in 95 % of the tables."""
    rng = np.random.default_rng([70, round(100 * spread)])
    truth = spread * np.arange(6)
    held = 0
    for _ in range(400):
        means = [compute_mean(np.exp(rng.normal(level, 0.02, 5))) for level in truth]
        order = np.argsort([-each.mean for each in means])
        intervals = compute_rank_intervals([means[at] for at in order], falling=True)
        for at, (best, worst) in zip(order, intervals, strict=True):
            # Equal levels share their ranks.
            if 1 + (truth > truth[at]).sum() > worst or (truth >= truth[at]).sum() < best:
                break
        else:
            held += 1
    assert held / 400 >= 0.95 - 0.02


DRIFT = [1.0, 1.5, 0.7, 1.2, 0.9, 1.1, 1.3]
NOISE = [1.001, 0.999, 1.0, 1.002, 0.998, 1.0, 1.001]


def enter_level(level, noise, **more):
    values = [level * drift * each for drift, each in zip(DRIFT, noise, strict=True)]
    return enter(values, **more)


def rank_entries(*entries):
    return compute_ranking([None] * len(entries), entries, falling=True)


def test_entries_of_a_contest_are_ranked_by_their_blocks():
    """Their drift is 20 times the difference, and in no pair."""
    fast, slow = enter_level(1.03, NOISE), enter_level(1.0, NOISE[::-1])
    assert rank_entries(fast, slow).intervals == [(1, 1), (2, 2)]
    assert rank_entries(fast, slow).groups == ["a", "b"]
    apart = rank_entries(fast, enter_level(1.0, NOISE, key="another"))
    assert (apart.intervals, apart.groups) == ([(1, 2), (1, 2)], ["a", "a"])


def test_a_smaller_alpha_proves_less():
    """p is about 0.02, as after interim analyses at 0.008."""
    noise = [1.1, 0.9, 1.02, 1.06, 0.94, 1.04, 0.98]
    rows = [enter_level(1.09, noise), enter_level(1.0, [1.0] * 7)]
    proven = compute_ranking([None, None], rows, falling=True)
    stricter = compute_ranking([None, None], rows, falling=True, alpha=0.008)
    assert (proven.groups, stricter.groups) == (["a", "b"], ["a", "a"])


def test_rows_without_a_common_letter_are_proven_to_differ():
    """The first and the last differ, and the one between them is noisy."""
    noisy = [1.1, 0.9, 1.0, 1.08, 0.92, 1.05, 0.96]
    ranking = rank_entries(
        enter_level(1.03, NOISE),
        enter_level(1.015, noisy),
        enter_level(1.0, NOISE[::-1]),
        enter_level(0.5, NOISE),
    )
    assert ranking.groups == ["a", "ab", "b", "c"]
    assert ranking.intervals == [(1, 2), (1, 3), (2, 3), (4, 4)]


def test_many_groups_of_a_row_are_written_as_a_range():
    means = [MeanEstimate(mean=-1.0 * at, error=0.5, degrees=500) for at in range(40)]
    ranking = compute_ranking(means, [None] * 40, falling=True)
    assert ranking.groups[0] == "a"
    assert "–" in ranking.groups[6]
    assert compute_ranking([], [], falling=True).groups == []


def test_identical_servers_are_one_group_and_a_faster_one_is_first():
    """As `make bench-detection` does with 1,000 boards; 5 % of them may be wrong."""
    rng = np.random.default_rng(78)
    same = [simulate_ranking(rng, SERVERS, 7, 0.02)[0].groups for _ in range(25)]
    assert sum(set(groups) == {"a"} for groups in same) >= 22
    found = 0
    for _ in range(10):
        ranking, order = simulate_ranking(rng, SERVERS, 15, 0.01, faster=0.05)
        found += order[0] == 0 and ranking.intervals[0] == (1, 1)
    assert found >= 9
