"""The noise between builds of one commit: how much they differ beyond the noise of trials."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from orchestrator.stats import special

#: With fewer builds the standard deviation between them is hardly known.
FEWEST_BUILDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildNoise:
    """The standard deviation `sigma` between builds, of logs, with its 95 % interval.

    `builds`: the number of measured builds. `degrees` of freedom of the variance; without a
    measured difference between builds, `sigma` is 0 and they are 1.
    """

    builds: int
    sigma: float
    low: float
    high: float
    degrees: float


def estimate_build_noise(values: Iterable[tuple[int, float]]) -> BuildNoise | None:
    """Return the noise between builds, from pairs of a build and a value above 0.

    It is the variance component of a one-way analysis of the logs (Searle 1971, "Linear Models").
    The interval is that of the ratio of both variances, times the variance within builds; it is
    rather too wide. The degrees are those of Satterthwaite (1946). None with fewer than
    FEWEST_BUILDS builds, or if no build has two values.
    """
    groups: dict[int, list[float]] = defaultdict(list)
    for build, value in values:
        groups[build].append(math.log(value))
    sizes = np.array([len(group) for group in groups.values()], dtype=np.float64)
    builds, n = sizes.size, float(sizes.sum())
    if builds < FEWEST_BUILDS or n == builds:
        return None
    means = np.array([np.mean(group) for group in groups.values()])
    rests = sum(float(((np.array(group) - np.mean(group)) ** 2).sum()) for group in groups.values())
    whole = float((sizes * means).sum()) / n
    between_degrees, within_degrees = builds - 1, n - builds
    between = float((sizes * (means - whole) ** 2).sum()) / between_degrees
    within = rests / within_degrees
    values_a_build = (n - float((sizes**2).sum()) / n) / between_degrees
    variance = max(0.0, (between - within) / values_a_build)
    low, high = (
        max(0.0, between / special.fdtri(between_degrees, within_degrees, share) - within)
        / values_a_build
        for share in (0.975, 0.025)
    )
    spread = (between / values_a_build) ** 2 / between_degrees
    spread += (within / values_a_build) ** 2 / within_degrees
    return BuildNoise(
        builds=builds,
        sigma=math.sqrt(variance),
        low=math.sqrt(low),
        high=math.sqrt(high),
        degrees=max(1.0, variance**2 / spread) if spread else 1.0,
    )
