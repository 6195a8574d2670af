"""Paired comparisons of the values of a contest: those of two commits, and no second statistics."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.contests import (
    ContestEntry,
    ContestTrial,
    change_in_contest,
    compare_entries,
    difference_in_contest,
)
from orchestrator.stats.order_effect import find_order


def enter(values, *, key=0, places=None, builds=None, first_block=1):
    """An entry with the value of each block; None is a block without a value."""
    trials = {
        number: ContestTrial(
            value,
            places[number - first_block] if places else 0,
            builds[number - first_block] if builds else 0,
        )
        for number, value in enumerate(values, start=first_block)
        if value is not None
    }
    return ContestEntry(key=key, trials=trials)


def draw(seed, n, level=0.0):
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.1, n))
    places = [rng.permutation(3).tolist() for _ in range(n)]
    rows = []
    for row in range(3):
        effect = 0.02 * np.array([each[row] for each in places])
        logs = drift + effect + rng.normal(row * level, 0.02, n)
        rows.append(
            (np.exp(logs).tolist(), [3 * at + each[row] + 1 for at, each in enumerate(places)])
        )
    return rows


@pytest.mark.parametrize("n", [5, 7, 20])
@pytest.mark.parametrize("builds", [None, [1, 1, 2, 2, 3, 3, 4, 4] * 3])
def test_a_change_is_that_of_a_comparison_of_two_commits(n, builds):
    (base, base_places), (other, other_places), _ = draw(n, n, 0.05)
    entry = enter(other, places=other_places, builds=builds)
    found = change_in_contest(
        entry, enter(base, places=base_places, builds=builds), 9.0, are_means=True
    )
    orders = list(map(find_order, base_places, other_places))
    pairs = [(each, each) for each in builds[:n]] if builds else []
    expected = compare_blocks(base, other, better="lower", margin=0.05, orders=orders, builds=pairs)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.change, expected.low, expected.high)
    )
    assert (found.n, found.paired) == (n, True)
    assert found.low < 0.05 < found.high or n == 5


def test_all_pairs_at_once_equal_single_ones_with_missing_blocks():
    rows = draw(3, 12, 0.03)
    entries = [enter(values, places=places) for values, places in rows]
    gaps = [None if at in (2, 5) else value for at, value in enumerate(rows[2][0])]
    entries[2] = enter(gaps, places=rows[2][1])
    first, second = np.triu_indices(3, k=1)
    means = compare_entries(entries, first, second)
    for place, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        single = change_in_contest(entries[one], entries[other], 0.0, are_means=True)
        assert single is not None
        assert math.expm1(means.mean[place]) == pytest.approx(single.value)
        assert (means.error[place], means.degrees[place]) == pytest.approx(
            (single.tested.error, single.tested.degrees)
        )
        assert single.n == (12 if other == 1 else 10)


@pytest.mark.parametrize(
    "base",
    [
        None,
        enter([1.0] * 7, key="another contest"),
        enter([1.0] * 7, first_block=8),
        enter([1.0] * 4 + [None] * 3),
        enter([0.0] + [1.0] * 6),
    ],
)
def test_values_are_paired_only_in_five_common_blocks_of_one_contest(base):
    entry = enter([1.1, 1.2, 1.1, 1.2, 1.1, 1.2, 1.1])
    assert change_in_contest(entry, base, 0.1, are_means=True) is None
    assert difference_in_contest(entry, base, (1.1, 1.0), are_means=True) is None
    first, second = np.array([0]), np.array([1])
    assert np.isnan(compare_entries([entry, base], first, second).mean).all()


def test_a_change_of_medians_has_no_interval():
    entry, base = enter([1.1] * 6), enter([1.0] * 6)
    found = change_in_contest(entry, base, 0.12, are_means=False)
    assert (found.value, found.low, found.high, found.paired) == (0.12, None, None, True)
    assert found.tested.mean == pytest.approx(math.log(1.1))


def test_a_difference_is_without_the_drift_of_the_blocks():
    drift = [1.0, 1.5, 0.7, 1.2, 0.9, 1.1]
    noise = [1.01, 0.99, 1.0, 1.01, 0.99, 1.0]
    entry = enter([12 * each * more for each, more in zip(drift, noise, strict=True)])
    base = enter([10 * each for each in drift])
    found = difference_in_contest(entry, base, (12.0, 10.0), are_means=True)
    assert found.value == 2.0
    # The logs of the drift are scaled by both means, so their difference has a sixth of it.
    assert 0 < found.high - found.low < 2.0
    same = difference_in_contest(enter(drift), enter(drift), (1.0, 1.0), are_means=True)
    assert (same.value, same.low, same.high) == pytest.approx((0.0, 0.0, 0.0))
