"""How often the difference between builds causes a false claim, or a wrong culprit.

All results are those of the shipped functions, on generated blocks with noise within and between
builds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orchestrator.runs.trial_order import number_build
from orchestrator.stats.bisection import (
    Answer,
    Culprit,
    compute_step_blocks,
    count_most_steps,
    plan_step,
    read_answer,
)
from orchestrator.stats.build_noise import BuildNoise, estimate_build_noise
from orchestrator.stats.build_variance import ENOUGH_BUILDS
from orchestrator.stats.comparison import (
    ALPHA,
    EQUIVALENCE_ALPHA,
    Comparison,
    Verdict,
    compare_blocks,
)
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_BLOCKS,
    INTERIM_EQUIVALENCE_ALPHA,
)
from perf.detection.comparisons import MARGIN
from perf.detection.false_claims import count_claims, draw_orders

BETWEEN_BUILDS = (0.0, 0.005, 0.01, 0.015, 0.02)
BUILDS = (1, 3, ENOUGH_BUILDS)
NOISES = (0.01, 0.02)
#: Bisections name a commit up to this difference between builds.
USUAL_BETWEEN = 0.015
ROUNDS = 10
#: Of a calibration.
PAIRS = 10
#: The bisections: the noise of a trial, the number of commits, and the change of the culprit.
NOISE, COMMITS, CHANGE = 0.02, 16, 0.05
_MOST_CONFIRMATIONS = 100


class Variation(NamedTuple):
    """The noise of a trial and between builds, as logs, and the number of builds of a commit."""

    noise: float
    between: float
    builds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildClaims:
    """Comparisons of a commit with itself, in ROUNDS rounds with so many `builds` on each side.

    Shares of comparisons that claim a change; and with a change of 5 %, that find it.
    """

    noise: float
    between: float
    builds: int
    claimed: float
    found: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisections:
    """Bisections among COMMITS commits. Shares that name a `wrong` commit, or none (`undecided`).

    `steps`, `blocks` and `builds` are means for one bisection; builds are of both commits.
    """

    between: float
    builds: int
    wrong: float
    undecided: float
    steps: float
    blocks: float
    builds_made: float


@dataclass(frozen=True, slots=True)
class BuildErrors:
    """`calibrated`: with a single build on each side, on hosts with a calibration."""

    claims: Sequence[BuildClaims]
    calibrated: Sequence[BuildClaims]
    bisections: Sequence[Bisections]


def measure_build_errors(number: int, seed: int) -> BuildErrors:
    """Return the claims of `number` comparisons of each kind, and a tenth as many bisections."""
    rng = np.random.default_rng([seed, 68])
    claims = [
        _measure_claims(rng, number, Variation(noise, between, builds))
        for noise in NOISES
        for between in BETWEEN_BUILDS
        for builds in BUILDS
    ]
    calibrated = [
        measure_calibrated(rng, number, Variation(noise, between, 1))
        for noise in NOISES
        for between in BETWEEN_BUILDS
    ]
    searches = max(COMMITS, number // 10)
    bisections = [
        measure_bisections(rng, searches, Variation(NOISE, between, builds))
        for builds in (1, ENOUGH_BUILDS)
        for between in BETWEEN_BUILDS
    ]
    return BuildErrors(claims, calibrated, bisections)


def compare_builds(
    rng: np.random.Generator,
    each: Variation,
    change: float,
    *,
    rounds: int = ROUNDS,
    interim: bool = False,
    known: BuildNoise | None = None,
) -> Comparison:
    """Return the comparison of a run with new builds of both commits; `change` is a log.

    `interim`: as in an interim analysis. `known`: from a calibration of the host.
    """
    (orders,) = draw_orders(rng, 1, rounds)
    numbers = [number_build(number, each.builds) for number in range(1, rounds + 1)]
    levels = rng.normal(0, each.between, (2, each.builds + 1))[:, numbers]
    logs = levels + rng.normal(0, each.noise, (2, rounds)) + [[0.0], [change]]
    before, after = np.exp(logs).tolist()
    return compare_blocks(
        before,
        after,
        better="lower",
        margin=MARGIN,
        orders=orders.tolist(),
        builds=[(2 * number + 1, 2 * number + 2) for number in numbers],
        build_noise=known,
        alpha=INTERIM_ALPHA if interim else ALPHA,
        equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA if interim else EQUIVALENCE_ALPHA,
    )


def _measure_claims(rng: np.random.Generator, number: int, each: Variation) -> BuildClaims:
    equal = [compare_builds(rng, each, 0.0) for _ in range(number)]
    changed = [compare_builds(rng, each, math.log1p(CHANGE)) for _ in range(max(1, number // 4))]
    found = sum(one.verdict is Verdict.REGRESSED for one in changed) / len(changed)
    return BuildClaims(claimed=count_claims(equal), found=found, **each._asdict())


def measure_bisections(rng: np.random.Generator, number: int, each: Variation) -> Bisections:
    """Return the results of `number` bisections; each culprit is as frequent as another."""
    ends = [_search(rng, at % COMMITS, each) for at in range(number)]
    blocks = [steps * size for _, steps, size in ends]
    steps = [steps for _, steps, _ in ends]
    return Bisections(
        between=each.between,
        builds=each.builds,
        wrong=sum(right is False for right, *_ in ends) / number,
        undecided=sum(right is None for right, *_ in ends) / number,
        steps=float(np.mean(steps)),
        blocks=float(np.mean(blocks)),
        builds_made=2 * each.builds * float(np.mean(steps)),
    )


def _search(
    rng: np.random.Generator, culprit: int, each: Variation
) -> tuple[bool | None, int, int]:
    """Search a culprit. Return whether the named one is right (None: none is named).

    The other results are the number of steps, and the blocks of each.
    """
    confirmed = _confirm(rng, each)
    effect, error = confirmed.difference, confirmed.error
    blocks = compute_step_blocks(effect, error, confirmed.blocks)
    answers: list[Answer] = []
    most = count_most_steps(COMMITS)
    for steps in range(most + 1):
        step = plan_step(COMMITS, answers, effect=effect, effect_error=error)
        if isinstance(step, Culprit):
            return step.first == step.last == culprit, steps, blocks
        if steps < most:
            change = math.log1p(CHANGE) if step.index >= culprit else 0.0
            found = compare_builds(rng, each, change, rounds=blocks)
            answer = read_answer(step.index, found)
            assert answer is not None, "all blocks have values"
            answers.append(answer)
    return None, most, blocks


def _confirm(rng: np.random.Generator, each: Variation) -> Answer:
    """Return the measurement of a confirmation run that found a regression."""
    for _ in range(_MOST_CONFIRMATIONS):
        for rounds in INTERIM_BLOCKS:
            found = compare_builds(rng, each, math.log1p(CHANGE), rounds=rounds, interim=True)
            if found.verdict is Verdict.REGRESSED:
                answer = read_answer(0, found)
                assert answer is not None, "all blocks have values"
                return answer
    raise ValueError(f"a change of {CHANGE} is never confirmed with {each}")


def draw_calibration(rng: np.random.Generator, each: Variation) -> BuildNoise:
    """Return the noise between builds from a calibration in PAIRS pairs of rounds."""
    rounds = range(1, 2 * PAIRS + 1)
    numbers = [number_build(number, each.builds) for number in rounds]
    levels = rng.normal(0, each.between, each.builds + 1)[numbers]
    values = np.exp(levels + rng.normal(0, each.noise, len(numbers))).tolist()
    noise = estimate_build_noise(zip(numbers, values, strict=True))
    assert noise is not None, "each build has several values"
    return noise


def measure_calibrated(rng: np.random.Generator, number: int, each: Variation) -> BuildClaims:
    """Return the claims of single builds on hosts whose noise between builds is calibrated.

    Each comparison has another calibration, with ENOUGH_BUILDS builds.
    """
    calibrated = each._replace(builds=ENOUGH_BUILDS)

    def compare(change: float) -> Comparison:
        return compare_builds(rng, each, change, known=draw_calibration(rng, calibrated))

    equal = [compare(0.0) for _ in range(number)]
    changed = [compare(math.log1p(CHANGE)) for _ in range(max(1, number // 4))]
    found = sum(one.verdict is Verdict.REGRESSED for one in changed) / len(changed)
    return BuildClaims(claimed=count_claims(equal), found=found, **each._asdict())
