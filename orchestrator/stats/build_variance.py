"""The variance between builds of one commit, in the error of a comparison.

Two builds of the same source may differ in speed: layout of code, order of linking, profiles. The
blocks of one pair of builds share that difference. So blocks are nested in builds. In block i of
pair j, the difference of logs is dᵢⱼ = change + bⱼ + noise, and bⱼ varies between pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.order_effect import BlockMeans

#: With fewer builds of each commit, the difference between builds is hardly known.
ENOUGH_BUILDS = 5
#: The build of a trial is not known.
UNKNOWN_BUILD = 0

#: The builds of both trials of a block are not known.
UNKNOWN_BUILDS = (UNKNOWN_BUILD, UNKNOWN_BUILD)

#: Rows of cells and columns of blocks, with the builds of baseline and contender.
Builds = NDArray[np.int64]


class _Error(NamedTuple):
    """The standard error of a mean, and its degrees of freedom."""

    error: float
    degrees: float


def add_build_variance(
    means: BlockMeans, builds: Builds, known: Sequence[BuildNoise | None]
) -> BlockMeans:
    """Return the means with the variance between builds in their errors, where it is larger.

    `known`: for each row, the noise between builds that was measured otherwise. A side with a
    single build tells nothing about it, so its variance is added for each such side.

    The mean square between builds (Kalibera and Jones 2013, "Rigorous Benchmarking in Reasonable
    Time") replaces that between blocks if it gives a larger variance of the mean. Otherwise both
    are pooled (Bancroft 1944). The degrees of freedom are those of Satterthwaite (1946). With equal
    numbers of blocks, they are the number of pairs of builds − 1. For unequal numbers, the variance
    component is that of an unbalanced one-way analysis (Searle 1971).

    With 5 pairs of builds the rate of false changes at 0.015 is at most 0.02; with 3 it is at most
    0.045 (`perf/detection/build_noise.py`).
    """
    several = (builds != builds[:, :1]).any(axis=(1, 2))
    error, degrees = means.error.copy(), means.degrees.copy()
    for row in np.flatnonzero(several).tolist():
        error[row], degrees[row] = _compute_error(means, row, builds[row])
    for row, noise in enumerate(known):
        if noise is not None and find_added_noise(builds[row], noise):
            variance = _count_single_builds(builds[row]) * noise.sigma**2
            both = _Error(error[row], degrees[row])
            error[row], degrees[row] = _add_variance(both, variance, noise.degrees)
    return replace(means, error=error, degrees=degrees, nested=error > means.error)


def find_added_noise(builds: Builds, known: BuildNoise | None) -> float | None:
    """Return the known noise between builds, if it is added because a side has a single build.

    `builds`: a row for each block, with the builds of both sides.
    """
    return known.sigma if known is not None and _count_single_builds(builds) else None


def _count_single_builds(builds: Builds) -> int:
    """Return how many sides have a single build of their own; 0 if the builds are not known."""
    baseline, contender = (set(side) for side in builds.T.tolist())
    if UNKNOWN_BUILD in baseline | contender or baseline == contender:
        return 0
    return (len(baseline) == 1) + (len(contender) == 1)


def _add_variance(known: _Error, variance: float, degrees: float) -> _Error:
    """Return the error with a further variance of the mean (Satterthwaite 1946)."""
    own = known.error**2
    whole = own + variance
    joined = whole**2 / (own**2 / known.degrees + variance**2 / degrees)
    return _Error(math.sqrt(whole), max(joined, 1.0))


def _compute_error(means: BlockMeans, row: int, builds: Builds) -> _Error:
    """Return the error with the variance between builds, or that between blocks if it is larger."""
    rests = means.differences[row] - means.mean[row]
    _, labels = np.unique(builds, axis=0, return_inverse=True)
    sizes = np.bincount(labels.ravel()).astype(np.float64)
    n, pairs, squares = rests.size, sizes.size, float((rests**2).sum())
    pooled_degrees = float(means.block_degrees[row])
    between_degrees, within_degrees = pairs - 1, pooled_degrees - (pairs - 1)
    blocks = _Error(float(means.block_error[row]), pooled_degrees)
    if within_degrees <= 0 or squares == 0:
        # No two blocks share a build: blocks are the replicates already.
        return blocks
    between = float((np.bincount(labels.ravel(), rests) ** 2 / sizes).sum())
    between_square = between / between_degrees
    within_square = max(squares - between, 0.0) / within_degrees
    weight = blocks.error**2 * pooled_degrees / squares
    blocks_a_pair = (n - (sizes**2).sum() / n) / between_degrees
    share = float((sizes**2).sum() / n**2 / blocks_a_pair)
    parts = share * between_square, (weight - share) * within_square
    variance = sum(parts)
    if variance <= blocks.error**2:
        return blocks
    degrees = variance**2 / (parts[0] ** 2 / between_degrees + parts[1] ** 2 / within_degrees)
    return _Error(math.sqrt(variance), min(max(degrees, 1.0), pooled_degrees))


def count_builds(builds: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of different builds on each side; 0 if one of them is not known."""
    baseline, contender = ({pair[side] for pair in builds} for side in (0, 1))
    return _count_known(baseline), _count_known(contender)


def _count_known(builds: set[int]) -> int:
    return 0 if UNKNOWN_BUILD in builds else len(builds)
