import base64
import math

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.histogram import HIGHEST_US, Histogram

PERCENTILES = (0, 0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100)

values = st.one_of(st.integers(0, 5_000), st.integers(0, 10_000_000), st.integers(0, HIGHEST_US))
counted = st.lists(st.tuples(values, st.integers(1, 1_000_000)), max_size=60)


def build_histogram(pairs):
    return Histogram.from_counts([value for value, _ in pairs], [count for _, count in pairs])


def theirs(pairs):
    histogram = HdrHistogram(1, HIGHEST_US, 3)
    for value, count in pairs:
        histogram.record_value(value, count)
    return histogram


def latencies(seed=7):
    """A million requests of a plausible server, as (µs, count); the total is a round number."""
    drawn = np.random.default_rng(seed).lognormal(8, 1.5, 1_000_000).astype(np.int64)
    value, count = np.unique(drawn, return_counts=True)
    return list(zip(value.tolist(), count.tolist(), strict=True))


@pytest.fixture(scope="module")
def both():
    pairs = latencies()
    return build_histogram(pairs), theirs(pairs)


@pytest.mark.parametrize("percentile", PERCENTILES)
def test_histogram_has_the_percentiles_of_the_reference(both, percentile):
    mine, reference = both
    assert mine.percentile(percentile) == reference.get_value_at_percentile(percentile)


def test_histogram_has_count_mean_minimum_and_maximum_of_the_reference(both):
    mine, reference = both
    assert mine.total_count == reference.get_total_count()
    assert mine.mean == pytest.approx(reference.get_mean_value(), rel=1e-12)
    assert mine.min == reference.get_min_value()
    assert mine.max == reference.get_max_value()


def test_the_reference_decodes_the_histogram(both):
    mine, _ = both
    read = HdrHistogram.decode(base64.b64encode(mine.encode()))
    assert read.get_total_count() == mine.total_count
    for percentile in PERCENTILES:
        assert read.get_value_at_percentile(percentile) == mine.percentile(percentile)


def test_histogram_decodes_the_reference(both):
    mine, reference = both
    assert Histogram.decode(base64.b64decode(reference.encode())) == mine


def test_histogram_of_a_million_requests_needs_few_kilobytes(both):
    assert len(both[0].encode()) < 15_000


@given(counted)
def test_histogram_survives_encoding(pairs):
    histogram = build_histogram(pairs)
    assert Histogram.decode(histogram.encode()) == histogram


@given(st.lists(st.tuples(values, st.integers(1, 1_000)), min_size=1, max_size=20))
def test_histogram_and_reference_agree_on_any_counts(pairs):
    assert Histogram.decode(base64.b64decode(theirs(pairs).encode())) == build_histogram(pairs)


@given(counted, counted, counted)
def test_merging_histograms_gives_that_of_the_union(first, second, third):
    merged = build_histogram(first).merge(build_histogram(second), build_histogram(third))
    assert merged == build_histogram(first + second + third)
    assert merged.total_count == sum(count for _, count in first + second + third)


@given(st.lists(st.integers(1, HIGHEST_US), min_size=1, max_size=200), st.floats(0.01, 100))
def test_histogram_percentiles_are_within_a_thousandth_of_the_exact_ones(drawn, percentile):
    histogram = Histogram.from_counts(drawn, [1] * len(drawn))
    rank = max(1, math.ceil(round(percentile * len(drawn) / 100, 6)))
    exact = sorted(drawn)[rank - 1]
    assert exact <= histogram.percentile(percentile) <= exact * (1 + 1 / 1024)


@given(st.lists(st.integers(1, HIGHEST_US), min_size=1, max_size=200))
def test_histogram_mean_is_within_half_a_thousandth_of_the_exact_one(drawn):
    histogram = Histogram.from_counts(drawn, [1] * len(drawn))
    assert histogram.mean == pytest.approx(sum(drawn) / len(drawn), rel=1 / 2048)


def test_histogram_is_exact_for_short_latencies():
    histogram = Histogram.from_counts([1, 2, 2047], [1, 1, 2])
    assert [histogram.percentile(p) for p in (25, 50, 75, 100)] == [1, 2, 2047, 2047]
    assert (histogram.min, histogram.max, histogram.mean) == (1, 2047, 4097 / 4)


def test_an_empty_histogram_has_no_values():
    empty = Histogram.from_counts([], [])
    assert (empty.total_count, empty.min, empty.max, empty.mean) == (0, None, None, None)
    assert Histogram.decode(empty.encode()) == empty
    with pytest.raises(ValueError, match="empty histogram"):
        empty.percentile(50)


@pytest.mark.parametrize(
    ("value", "count", "message"),
    [
        ([1, 2], [1], "2 values but 1 counts"),
        ([-1], [1], "outside 0 to"),
        ([HIGHEST_US + 1], [1], "outside 0 to"),
        ([1], [-1], "negative count"),
    ],
)
def test_invalid_counts_are_refused(value, count, message):
    with pytest.raises(ValueError, match=message):
        Histogram.from_counts(value, count)


def test_histogram_refuses_a_percentile_outside_the_range():
    with pytest.raises(ValueError, match="expected 0 to 100"):
        Histogram.from_counts([1], [1]).percentile(101)


def damaged():
    whole = build_histogram([(5, 3), (70_000, 9)]).encode()
    other = HdrHistogram(1, 3_600_000, 2)
    other.record_value(5)
    yield "nothing", b""
    yield "text", b"not a histogram at all"
    yield "cut short", whole[:-4]
    yield "longer", whole + b"x"
    yield "flipped", whole[:20] + bytes([whole[20] ^ 0xFF]) + whole[21:]
    yield "another range", base64.b64decode(other.encode())


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in damaged()])
def test_invalid_bytes_are_refused(data):
    with pytest.raises(ValueError, match="histogram"):
        Histogram.decode(data)


@given(st.binary(max_size=200))
def test_invalid_bytes_raise_no_other_error(data):
    with pytest.raises(ValueError, match="histogram"):
        Histogram.decode(data)
