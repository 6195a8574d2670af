"""Whether the smallest detectable change is reported four times in five, by the shipped rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.comparison import Verdict
from orchestrator.stats.many import ComparisonInput, compare_many
from orchestrator.stats.multiple_testing import judge_matrix
from orchestrator.stats.noise import estimate_noise
from orchestrator.stats.power import (
    POWER,
    build_claim_rule,
    compute_block_sigma,
    compute_power,
    compute_smallest_change,
)

NOISES = (0.005, 0.01, 0.02, 0.04)
BLOCKS = (5, 7, 10, 20)
FAMILIES = (1, 3, 60)
#: The pairs of a calibration.
PAIRS = 10
MARGIN = 0.03
_UNCHANGED = 0.0005 * np.array([1.0, -1.0, 1.0, -1.0, 0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """`reported`: noise, blocks and family → the share of comparisons that report the change.

    Their change is the smallest detectable one for the true noise. `assured`: the share of
    calibrations from whose noise the change has a power of at least 0.8; `average`: their power.
    """

    reported: Mapping[tuple[float, int, int], float]
    assured: float
    average: float


def measure_power(number: int, seed: int) -> Power:
    """Return the shares of `number` comparisons for each noise, number of blocks and family."""
    rng = np.random.default_rng([seed, 12])
    reported = {
        (noise, blocks, family): _measure_reported(rng, number, noise, blocks, family)
        for noise, blocks, family in product(NOISES, BLOCKS, FAMILIES)
    }
    powers = [
        _measure_calibrated(rng, noise, blocks)
        for noise, blocks in product(NOISES, BLOCKS)
        for _ in range(number)
    ]
    return Power(
        reported=reported,
        assured=float(np.mean(np.array(powers) >= POWER)),
        average=float(np.mean(powers)),
    )


def _measure_reported(
    rng: np.random.Generator, number: int, noise: float, blocks: int, family: int
) -> float:
    sigma, rule = compute_block_sigma(noise), build_claim_rule(MARGIN, family=family)
    mean = math.log1p(compute_smallest_change(sigma, blocks, rule))
    (same,) = compare_many([_build_input(_UNCHANGED)])
    others = {str(at): {"": same} for at in range(1, family)}
    drawn = rng.normal(mean, sigma, (number, blocks))
    verdicts = [
        judge_matrix(
            {"0": {"": each}, **others}, primary=dict.fromkeys(["0", *others], ("",))
        ).cells["0", ""]
        for each in compare_many([_build_input(logs) for logs in drawn])
    ]
    return verdicts.count(Verdict.REGRESSED) / number


def _build_input(logs: NDArray[np.float64]) -> ComparisonInput:
    return ComparisonInput(
        baseline=[1.0] * len(logs),
        contender=np.exp(logs).tolist(),
        better="lower",
        margin=MARGIN,
        orders=[1 if block % 2 else -1 for block in range(len(logs))],
    )


def _measure_calibrated(rng: np.random.Generator, noise: float, blocks: int) -> float:
    """Return the true power for the change that one calibration calls detectable."""
    sigma, rule = compute_block_sigma(noise), build_claim_rule(MARGIN, family=1)
    calibrated = estimate_noise(rng.normal(0, sigma, PAIRS).tolist())
    assert calibrated is not None
    change = compute_smallest_change(calibrated.upper, blocks, rule)
    return compute_power(sigma, blocks, change, rule)
