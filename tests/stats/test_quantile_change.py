"""The change at each percentile, and a band that holds the whole curve."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.histogram import Histogram
from orchestrator.stats.quantile_change import bootstrap_critical_value, compute_quantile_changes
from orchestrator.stats.summary import compute_t_quantile


def _histogram(generator: np.random.Generator, scale: float, requests: int = 20_000) -> Histogram:
    values = generator.lognormal(math.log(3000 * scale), 0.5, requests).astype(np.int64)
    unique, counts = np.unique(values, return_counts=True)
    return Histogram.from_counts(unique, counts)


def _blocks(count: int, change: float = 0.0, seed: int = 1) -> list[tuple[Histogram, Histogram]]:
    """Each block has a level of its own; each trial 2 % of noise."""
    generator = np.random.default_rng(seed)
    blocks = []
    for _ in range(count):
        level = math.exp(generator.normal(0, 0.1))
        before, after = np.exp(generator.normal([0, math.log1p(change)], 0.02)) * level
        blocks.append((_histogram(generator, before), _histogram(generator, after)))
    return blocks


def test_each_percentile_is_a_separate_paired_comparison() -> None:
    blocks = _blocks(8, 0.1)
    curve = compute_quantile_changes(blocks)
    assert [point.percentile for point in curve.points][-1] == 99.9
    for point in curve.points:
        before, after = ([side.percentile(point.percentile) for side in each]
                         for each in zip(*blocks, strict=True))  # fmt: skip
        alone = compare_blocks(before, after, better="lower", margin=0.05)
        assert point.change == pytest.approx(alone.change, rel=1e-9)
        assert (point.low, point.high) == pytest.approx((alone.low, alone.high), rel=1e-9)
        assert point.baseline_s == pytest.approx((alone.baseline or 0) / 1e6, rel=1e-9)


def test_the_band_lies_around_the_intervals() -> None:
    curve = compute_quantile_changes(_blocks(7, 0.1))
    for point in curve.points:
        assert point.band_low < point.low < point.change < point.high < point.band_high


def test_the_same_data_give_the_same_band() -> None:
    assert compute_quantile_changes(_blocks(6)) == compute_quantile_changes(_blocks(6))


@pytest.mark.parametrize("blocks", [5, 10])
@pytest.mark.parametrize("neighbours", [0.0, pytest.param(0.5, marks=pytest.mark.slow), 0.95])
def test_the_band_covers_the_whole_curve_as_often_as_stated(blocks: int, neighbours: float) -> None:
    generator = np.random.default_rng(20)
    columns, times = 11, 600
    places = np.arange(columns)
    correlation = neighbours ** np.abs(places[:, None] - places[None, :])
    root = np.linalg.cholesky(correlation)
    held = 0
    for _ in range(times):
        seen = generator.standard_normal((blocks, columns)) @ root.T
        reach = (
            bootstrap_critical_value(seen, draws=500) * seen.std(axis=0, ddof=1) / math.sqrt(blocks)
        )
        held += bool((np.abs(seen.mean(axis=0)) <= reach).all())
    # In the long run 94 of 100 with so few draws; rounding, which differs between CPUs, moves some.
    assert held / times >= 0.92


def test_the_critical_value_lies_between_one_interval_and_bonferroni() -> None:
    seen = np.random.default_rng(2).standard_normal((10, 6))
    critical_value = bootstrap_critical_value(seen)
    assert compute_t_quantile(0.95, 9) < critical_value <= compute_t_quantile(1 - 0.05 / 6, 9)
    assert bootstrap_critical_value(seen[:, :1]) == compute_t_quantile(0.95, 9)
    assert bootstrap_critical_value(np.repeat(seen[:, :1], 6, axis=1)) < critical_value


def test_only_supported_percentiles_are_drawn() -> None:
    generator = np.random.default_rng(4)
    few = [tuple(_histogram(generator, 1.0, 1_500) for _ in range(2)) for _ in range(5)]
    percentiles = [point.percentile for point in compute_quantile_changes(few).points]
    assert percentiles == [1, 5, 10, 25, 50, 75, 90, 95, 99]
    one = Histogram.from_counts([5], [3])
    assert compute_quantile_changes([(one, one)]).points == ()


def test_few_blocks_have_no_band_and_one_has_no_interval() -> None:
    four, one = (
        compute_quantile_changes(_blocks(4)).points[4],
        compute_quantile_changes(_blocks(1)).points[4],
    )
    assert four.low is not None
    assert four.band_low is None
    assert one.low is None
    assert one.change is not None
    assert compute_quantile_changes([]).points == ()


def test_equal_histograms_have_the_resolution_of_their_counters() -> None:
    same = Histogram.from_counts([100], [10_000])
    point = compute_quantile_changes([(same, same)] * 6).points[0]
    assert point.change == 0
    assert 0 < point.high < 0.02
    assert -0.02 < point.low < 0


def test_percentiles_of_zero_and_empty_histograms_are_omitted() -> None:
    zero = Histogram.from_counts([0, 50], [90_000, 10_000])
    points = compute_quantile_changes([(zero, zero)] * 5).points
    assert [point.percentile for point in points] == [95, 99, 99.5, 99.9]
    empty = Histogram.from_counts([], [])
    assert compute_quantile_changes([(empty, zero)] * 5).points == ()


def test_swapping_the_sides_inverts_the_curve() -> None:
    blocks = _blocks(6, 0.1)
    there = compute_quantile_changes(blocks).points
    back = compute_quantile_changes([(after, before) for before, after in blocks]).points
    for one, other in zip(there, back, strict=True):
        assert 1 + other.change == pytest.approx(1 / (1 + one.change))
        assert 1 + other.band_low == pytest.approx(1 / (1 + one.band_high))


def test_the_order_of_blocks_does_not_matter_much() -> None:
    blocks = _blocks(7, 0.05)
    there, back = (
        compute_quantile_changes(blocks).points,
        compute_quantile_changes(blocks[::-1]).points,
    )
    for one, other in zip(there, back, strict=True):
        assert one.change == pytest.approx(other.change)
        assert one.band_high == pytest.approx(other.band_high, rel=0.05)


def test_percentiles_together_equal_percentiles_one_by_one() -> None:
    histogram = _histogram(np.random.default_rng(5), 1.0)
    wanted = [0.1, 1, 50, 99, 99.9, 100]
    assert histogram.percentiles(wanted).tolist() == [histogram.percentile(q) for q in wanted]
    with pytest.raises(ValueError, match="over 0"):
        histogram.percentiles([0])
    with pytest.raises(ValueError, match="empty"):
        Histogram.from_counts([], []).percentiles([50])
