"""The change of the whole latency distribution: a curve over the percentiles, with bands.

In block i, at percentile q, dᵢ(q) = ln(contender's quantile / baseline's quantile), from the
histograms of the two trials. Differences are averaged; quantiles of trials never are. A pointwise
interval is the paired t interval of one percentile. The simultaneous band contains the whole true
curve in 95 % of all comparisons. Its critical value is that of the largest |t| over the curve. It
is simulated for normal blocks with the shrunken sample correlation (the sup-t band of Montiel Olea
and Plagborg-Møller, J. Applied Econometrics 34, 2019; shrinkage as in Schäfer and Strimmer, Stat.
Appl. Genet. Mol. Biol. 4, 2005). The curve itself is the shift function of Doksum, Ann. Statist. 2,
1974.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.histogram import Histogram
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.summary import compute_t_quantile, is_supported

PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9)
#: Simulated comparisons for a critical value: the error of the value is about 3 %.
DRAWS = 2_000
_SEED = 20_130_630
#: The resolution of a quantile is the width of a counter: the error is uniform within it.
_UNIFORM_SD = 1 / math.sqrt(12)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileChange:
    """The change at one percentile, as contender / baseline − 1; `seconds` are geometric means.

    `low` and `high` bound this change alone; `band_low` and `band_high` bound it together with all
    other percentiles of the curve. All four are None with fewer than two blocks, the band with
    fewer than 5.
    """

    percentile: float
    baseline_s: float
    contender_s: float
    change: float
    low: float | None
    high: float | None
    band_low: float | None
    band_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileChanges:
    """`points` are the supported percentiles in ascending order, from `blocks` blocks."""

    blocks: int
    confidence: float
    points: tuple[QuantileChange, ...]


def compute_quantile_changes(
    blocks: Sequence[tuple[Histogram, Histogram]],
    *,
    percentiles: Sequence[float] = PERCENTILES,
    confidence: float = 0.95,
) -> QuantileChanges:
    """Return the curve of blocks, each with the histograms of a baseline and a contender.

    A percentile is included if both trials of every block have 10 requests between it and its
    nearer end, and its value is above zero. No points without blocks, or if a histogram is empty.
    """
    smallest = min((side.total_count for pair in blocks for side in pair), default=0)
    supported = [q for q in sorted(percentiles) if is_supported(max(q, 100 - q), smallest)]
    if not supported:
        return QuantileChanges(blocks=len(blocks), confidence=confidence, points=())
    values = np.array([[side.percentiles(supported) for side in pair] for pair in blocks])
    widths = np.array([[side.widths(supported) for side in pair] for pair in blocks])
    kept = (values > 0).all(axis=(0, 1))
    points = _build_points(
        np.array(supported)[kept], values[..., kept], widths[..., kept], confidence
    )
    return QuantileChanges(blocks=len(blocks), confidence=confidence, points=points)


def bootstrap_critical_value(
    differences: Floats, *, confidence: float = 0.95, draws: int = DRAWS
) -> float:
    """Return the half width, in standard errors, of a band that contains all columns' means.

    `differences`: blocks × percentiles, at least two blocks. The result is between the t quantile
    of one column and the Bonferroni quantile of all. It is seeded: equal data give an equal band.
    """
    blocks, columns = differences.shape
    single = compute_t_quantile(confidence, blocks - 1)
    if columns == 1:
        return single
    root = _compute_root(_shrink_correlation(differences))
    generator = np.random.default_rng(_SEED)
    drawn = generator.standard_normal((draws, blocks, columns)) @ root.T
    means = drawn.mean(axis=1)
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(blocks)
    largest = (np.abs(means) / errors).max(axis=1)
    bonferroni = compute_t_quantile(1 - (1 - confidence) / columns, blocks - 1)
    return float(np.clip(np.quantile(largest, confidence), single, bonferroni))


def _build_points(
    percentiles: Floats, values: Floats, widths: Floats, confidence: float
) -> tuple[QuantileChange, ...]:
    """`values` and `widths`: blocks × sides × percentiles, µs."""
    logs = np.log(values)
    differences = logs[:, 1] - logs[:, 0]
    blocks = len(differences)
    reach, band = _compute_half_widths(
        differences, _estimate_resolution(values, widths), confidence
    )
    means = differences.mean(axis=0)
    sides = np.exp(logs.mean(axis=0)) / 1e6
    return tuple(
        QuantileChange(
            percentile=float(percentile),
            baseline_s=float(sides[0, place]),
            contender_s=float(sides[1, place]),
            change=math.expm1(means[place]),
            low=None if reach is None else math.expm1(means[place] - reach[place]),
            high=None if reach is None else math.expm1(means[place] + reach[place]),
            band_low=None if band is None else math.expm1(means[place] - band[place]),
            band_high=None if band is None else math.expm1(means[place] + band[place]),
        )
        for place, percentile in enumerate(percentiles)
        if blocks
    )


def _compute_half_widths(
    differences: Floats, resolution: Floats, confidence: float
) -> tuple[Floats | None, Floats | None]:
    """Return the half widths of the pointwise intervals and of the band, as logs."""
    blocks = len(differences)
    if blocks < 2 or not differences.size:
        return None, None
    spread = np.maximum(differences.std(axis=0, ddof=1), resolution)
    error = spread / math.sqrt(blocks)
    reach = compute_t_quantile(confidence, blocks - 1) * error
    if blocks < FEWEST_BLOCKS:
        return reach, None
    return reach, bootstrap_critical_value(differences, confidence=confidence) * error


def _estimate_resolution(values: Floats, widths: Floats) -> Floats:
    """Return the standard deviation, as a log, of a difference due to the width of counters."""
    share = (widths / values).mean(axis=0)
    resolution: Floats = np.sqrt((share**2).sum(axis=0)) * _UNIFORM_SD
    return resolution


def _shrink_correlation(differences: Floats) -> Floats:
    """Shrink the correlation towards zero, with the share of least expected squared error."""
    blocks, columns = differences.shape
    centred = differences - differences.mean(axis=0)
    spread = differences.std(axis=0, ddof=1)
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    products = scaled[:, :, None] * scaled[:, None, :]
    correlation = products.sum(axis=0) / (blocks - 1)
    noise = products.var(axis=0, ddof=1) * blocks**2 / (blocks - 1) ** 2 / blocks
    others = ~np.eye(columns, dtype=bool)
    power = float((correlation[others] ** 2).sum())
    share = min(1.0, float(noise[others].sum()) / power) if power > 0 else 1.0
    shrunken: Floats = correlation * (1 - share)
    np.fill_diagonal(shrunken, 1.0)
    return shrunken


def _compute_root(correlation: Floats) -> Floats:
    """Return a matrix whose product with its transpose is `correlation`."""
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))
