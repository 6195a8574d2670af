"""Tests that others use to compare two commits: t-tests for each metric, and those of Pinpoint.

They get the trials of both sides, without their blocks and without a correction for many tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, mannwhitneyu, ttest_ind

from perf.detection.simulated_trials import ROUNDS_OF_A_RUN, Floats, SimulatedTrials

Bools = NDArray[np.bool_]

T_ALPHA = 0.05
#: Pinpoint, the bisection service of Chromium: catapult,
#: dashboard/dashboard/pinpoint/models/compare/. Two sides differ if the smaller p value of
#: Mann-Whitney and Kolmogorov-Smirnov is at most PINPOINT_LOW. Above PINPOINT_HIGH they are the
#: same. In between, ten more trials of each side follow. PINPOINT_HIGH depends on the number of
#: trials; these values are for a difference of one interquartile range.
PINPOINT_LOW = 0.01
PINPOINT_HIGH: Mapping[int, float] = {10: 0.5708, 20: 0.0859, 30: 0.0095}
ALTERNATIVES = ("t-tests", "t-tests, beyond the margin", "as Pinpoint")


@dataclass(frozen=True, slots=True)
class Claims:
    """`cells`: case × deciding metric, whether a change is claimed; `changes`: its size as a log.

    `rounds`: the mean number of a case.
    """

    cells: Bools
    changes: Floats
    rounds: float


def claim_as_alternatives(trials: SimulatedTrials) -> Mapping[str, Claims]:
    """Return what each alternative claims, by its name."""
    plain = claim_by_t_test(trials)
    return dict(
        zip(
            ALTERNATIVES,
            (plain, keep_beyond_margin(plain, trials), claim_as_pinpoint(trials)),
            strict=True,
        )
    )


def claim_by_t_test(trials: SimulatedTrials) -> Claims:
    """Welch's t-test at p < 0.05 for each metric, on ten trials of each side."""
    before, after = _take_sides(trials, ROUNDS_OF_A_RUN)
    p_values = ttest_ind(before, after, axis=-1, equal_var=False).pvalue
    changes = np.log(after.mean(axis=-1) / before.mean(axis=-1))
    return Claims(np.asarray(p_values < T_ALPHA), changes, ROUNDS_OF_A_RUN)


def keep_beyond_margin(claims: Claims, trials: SimulatedTrials) -> Claims:
    """Return only the claims of changes beyond the margin of their metric."""
    margins = np.array([metric.margin for metric in trials.metrics[: trials.primary]])
    beyond = np.abs(np.expm1(claims.changes)) > margins
    return Claims(claims.cells & beyond, claims.changes, claims.rounds)


def claim_as_pinpoint(trials: SimulatedTrials) -> Claims:
    """Mann-Whitney and Kolmogorov-Smirnov, with more trials while a p value is in between."""
    cells = trials.values.shape[0], trials.primary
    claimed, open_ = np.zeros(cells, dtype=bool), np.ones(cells, dtype=bool)
    changes, rounds = np.zeros(cells), np.zeros(cells)
    for size, high in PINPOINT_HIGH.items():
        before, after = _take_sides(trials, size)
        ranked = mannwhitneyu(before, after, axis=-1, method="asymptotic").pvalue
        p_values = np.minimum(ranked, _compute_kolmogorov(before, after))
        now = np.log(np.median(after, axis=-1) / np.median(before, axis=-1))
        rounds, changes = np.where(open_, size, rounds), np.where(open_, now, changes)
        claimed |= open_ & (p_values <= PINPOINT_LOW)
        open_ &= (p_values > PINPOINT_LOW) & (p_values <= high)
    return Claims(claimed, changes, float(rounds.max(axis=1).mean()))


def _take_sides(trials: SimulatedTrials, rounds: int) -> tuple[Floats, Floats]:
    taken = trials.values[:, : trials.primary, :, :rounds]
    return taken[:, :, 0], taken[:, :, 1]


def _compute_kolmogorov(before: Floats, after: Floats) -> Floats:
    """Return the exact p value of each row of two samples of equal size."""
    size = before.shape[-1]
    order = np.argsort(np.concatenate([before, after], axis=-1), axis=-1)
    steps = np.cumsum(np.where(order < size, 1, -1), axis=-1)
    return np.asarray(_TABLES[size][np.abs(steps).max(axis=-1)])


def _build_table(size: int) -> Floats:
    """Return the p values of distances of 0, 1/size, … 1; those of the first two are 1."""
    values = np.arange(size, dtype=np.float64)
    larger = [ks_2samp(values, values + at - 0.5).pvalue for at in range(2, size + 1)]
    return np.array([1.0, 1.0, *larger])


_TABLES = {size: _build_table(size) for size in PINPOINT_HIGH}
