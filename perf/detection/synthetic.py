"""Generate series with autocorrelated noise, outliers, drift and planted steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NOISES = (0.01, 0.02, 0.03, 0.05, 0.10)
STEPS = (0.02, 0.05, 0.10, 0.20)
CORRELATIONS = (0.0, 0.0, 0.3, 0.5)
#: Share of values that are spikes, and their size in sigma.
OUTLIERS, SPIKE_FROM, SPIKE_TO = 0.02, 5.0, 15.0
#: The largest drift of a series from its first to its last value.
DRIFT = 0.03
#: Points between two planted steps, and before the first and after the last one.
APART = 15


@dataclass(frozen=True, slots=True)
class Labelled:
    """A series, and the indices of the first values of new levels in it."""

    name: str
    values: list[float]
    changes: tuple[int, ...]
    lower_is_better: bool = True


def make_planted(rng: np.random.Generator, number: int) -> Labelled:
    """Return 100 to 300 points with none to four steps of 2 to 20 %, up or down."""
    n = int(rng.integers(100, 301))
    places = _choose_places(rng, n, int(rng.integers(0, 5)))
    log = make_background(rng, n)
    for place in places:
        log[place:] += rng.choice([-1, 1]) * np.log1p(rng.choice(STEPS))
    return Labelled(f"made {number}", (100 * np.exp(log)).tolist(), tuple(places))


def make_quiet(rng: np.random.Generator, number: int) -> Labelled:
    """Return a history of 50 to 500 commits without a change."""
    n = int(rng.integers(50, 501))
    return Labelled(f"A/A {number}", (100 * np.exp(make_background(rng, n))).tolist(), ())


def make_step(rng: np.random.Generator, *, noise: float, step: float, after: int) -> Labelled:
    """Return white noise of 50 to 150 points, then a step up with `after` points."""
    before = int(rng.integers(50, 151))
    log = rng.normal(0, noise, before + after)
    log[before:] += np.log1p(step)
    return Labelled("step", (100 * np.exp(log)).tolist(), (before,))


def make_background(rng: np.random.Generator, n: int) -> Floats:
    """Return logs without a step: noise of 1 to 10 %, half with outliers, half drifting."""
    noise = float(rng.choice(NOISES))
    log = _correlate(rng, n, float(rng.choice(CORRELATIONS))) * noise
    if rng.random() < 0.5:
        spikes = rng.random(n) < OUTLIERS
        sizes = rng.uniform(SPIKE_FROM, SPIKE_TO, n) * rng.choice([-1, 1], n) * noise
        log += np.where(spikes, sizes, 0.0)
    if rng.random() < 0.5:
        log += np.linspace(0, rng.uniform(-DRIFT, DRIFT), n)
    return log


def _correlate(rng: np.random.Generator, n: int, correlation: float) -> Floats:
    """Return first-order autoregressive noise with standard deviation 1."""
    fresh = rng.normal(0, np.sqrt(1 - correlation**2), n)
    noise = np.empty(n)
    noise[0] = rng.normal()
    for place in range(1, n):
        noise[place] = correlation * noise[place - 1] + fresh[place]
    return noise


def _choose_places(rng: np.random.Generator, n: int, count: int) -> list[int]:
    """Return `count` indices, each at least APART from the others and from both ends."""
    room = n - (count + 1) * APART
    cuts = np.sort(rng.integers(0, room + 1, count))
    return [int(cut) + (place + 1) * APART for place, cut in enumerate(cuts)]
