"""What must not matter to change points does not; and every input has an answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.stats.changes import find_changes

ANYTHING = st.lists(
    st.one_of(
        st.none(),
        st.floats(allow_nan=True, allow_infinity=True),
        st.floats(90, 110),
        st.sampled_from([0.0, 1.0, -1.0, 100.0]),
    ),
    max_size=120,
)


def stepped(seed, *, step=0.06, noise=0.01):
    rng = np.random.default_rng(seed)
    log = rng.normal(0, noise, 100)
    log[int(rng.integers(20, 80)) :] += step
    return 100 * np.exp(log)


def shape(values, **options):
    return [
        (change.index, round(change.change, 9), change.kind, change.regressed)
        for change in find_changes(values.tolist(), **options).points
    ]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("unit", [1e-9, 0.001, 7.0, 1e12])
def test_changes_do_not_depend_on_the_unit(seed, unit):
    values = stepped(seed)
    assert shape(values * unit) == shape(values)


@pytest.mark.parametrize("seed", range(10))
def test_reversing_the_direction_swaps_better_and_worse(seed):
    values = stepped(seed)
    worse, better = shape(values), shape(values, lower_is_better=False)
    assert [each[:3] for each in worse] == [each[:3] for each in better]
    assert [each[3] for each in worse] == [not each[3] for each in better]


@pytest.mark.parametrize("seed", range(10))
def test_a_reversed_series_has_the_same_change(seed):
    """At the same place or next to it: the two levels swap, and so does the side of the edge."""
    values = stepped(seed)
    (there,), (back,) = (
        find_changes(values.tolist()).points,
        find_changes(values[::-1].tolist()).points,
    )
    assert abs(back.index - (values.size - there.index)) <= 1
    assert (1 + back.change) * (1 + there.change) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("seed", range(10))
def test_rates_and_their_inverse_have_the_same_changes(seed):
    values = stepped(seed)
    (there,), (inverse,) = (
        find_changes(each.tolist(), lower_is_better=lower).points
        for each, lower in ((values, True), (1 / values, False))
    )
    assert there.index == inverse.index
    assert there.regressed == inverse.regressed
    assert (1 + inverse.change) * (1 + there.change) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
def test_the_sign_of_a_series_without_logarithms_does_not_matter(seed):
    values = stepped(seed) - 100
    plain, mirrored = find_changes(values.tolist()), find_changes((-values).tolist())
    assert [change.index for change in plain.points] == [change.index for change in mirrored.points]
    assert [change.regressed for change in plain.points] == [
        not change.regressed for change in mirrored.points
    ]


@given(ANYTHING, st.lists(st.integers(-5, 130), max_size=4))
@settings(max_examples=300)
def test_every_series_has_a_result(values, breaks):
    changes = find_changes(values, breaks=breaks)
    assert math.isfinite(changes.noise)
    for change in changes.points:
        assert 0 < change.index < len(values)
        assert values[change.index] is not None
        assert change.low <= change.change <= change.high
        assert 0 <= change.p_value <= 1e-3
        assert math.isfinite(change.high)
    assert len({change.index for change in changes.points}) == len(changes.points)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [5.0],
        [None] * 30,
        [math.nan] * 30,
        [0.0] * 50,
        [100.0] * 500,
        [-3.0] * 20,
        [1, 2] * 50,
        [1e300, 1e-300] * 20,
        [5e-324] * 20,
    ],
)
def test_a_constant_series_has_no_change(values):
    assert find_changes(values).points == ()


@pytest.mark.parametrize(
    ("values", "index", "change"),
    [
        ([0.0] * 20 + [5.0] * 20, 20, None),
        ([5.0] * 20 + [0.0] * 20, 20, -1.0),
        ([-4.0] * 20 + [-2.0] * 20, 20, None),
        ([100.0] * 20 + [200.0] * 20, 20, 1.0),
        ([1e300] * 10 + [1e-300] * 10, 10, -1.0),
        ([1e308] * 9 + [-1e308] * 9, 9, None),
    ],
)
def test_steps_without_noise_are_found_whatever_the_numbers(values, index, change):
    (change_point,) = find_changes(values).points
    assert change_point.index == index
    assert change_point.regressed is (values[-1] > values[0])
    assert change is None or change_point.change == pytest.approx(change)


def test_thousands_of_values_have_a_result():
    rng = np.random.default_rng(8)
    values = 100 * np.exp(rng.normal(0, 0.02, 5000))
    values[3000:] *= 1.05
    assert [round(change.index, -1) for change in find_changes(values.tolist()).points] == [3000]
