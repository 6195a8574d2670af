"""The noise between builds, from values of several builds of one commit."""

import math

import numpy as np
import pytest

from orchestrator.stats.build_noise import BuildNoise, estimate_build_noise
from orchestrator.stats.comparison import compare_blocks
from orchestrator.stats.many import ComparisonInput, compare_many
from perf.detection.build_noise import Variation, draw_calibration, measure_calibrated

RULES = {"better": "lower", "margin": 0.03}
ONE_BUILD = [(1, 2)] * 10


def test_equal_builds_have_no_noise():
    noise = estimate_build_noise((build, value) for build in range(5) for value in (1.0, 1.01))
    assert noise is not None
    assert (noise.builds, noise.sigma, noise.low, noise.degrees) == (5, 0.0, 0.0, 1.0)
    assert noise.high < 0.01


def test_without_noise_of_trials_it_is_the_deviation_between_builds():
    logs = [-0.02, -0.01, 0.0, 0.01, 0.02]
    values = [(build, math.exp(log)) for build, log in enumerate(logs) for _ in range(2)]
    noise = estimate_build_noise(values)
    assert noise is not None
    assert noise.sigma == pytest.approx(np.std(logs, ddof=1))
    assert noise.degrees == pytest.approx(4)


@pytest.mark.parametrize(
    "values",
    [[], [(1, 1.0), (1, 1.1), (2, 1.0), (2, 1.1)], [(build, 1.0) for build in range(5)]],
)
def test_too_few_builds_or_values_have_no_result(values):
    assert estimate_build_noise(values) is None


def test_an_unequal_number_of_values_is_allowed():
    noise = estimate_build_noise([(1, 1.0), (1, 1.0), (2, 1.1), (3, 1.2), (3, 1.2), (3, 1.2)])
    assert noise is not None
    assert noise.sigma > 0.05


def test_the_estimate_and_its_interval_are_right():
    rng = np.random.default_rng(68)
    found = [draw_calibration(rng, Variation(0.01, 0.01, 5)) for _ in range(1500)]
    assert np.mean([each.sigma**2 for each in found]) == pytest.approx(0.01**2, rel=0.1)
    covered = np.mean([each.low <= 0.01 <= each.high for each in found])
    assert 0.94 < covered < 0.99


def build_noise(sigma: float) -> BuildNoise:
    return BuildNoise(builds=5, sigma=sigma, low=sigma / 2, high=3 * sigma, degrees=3)


def draw_after() -> list[float]:
    return np.exp(np.random.default_rng(1).normal(0, 0.01, 10)).tolist()


def test_known_noise_is_added_for_each_side_with_a_single_build():
    after = draw_after()
    plain = compare_blocks([1.0] * 10, after, builds=ONE_BUILD, **RULES)
    noise = build_noise(0.01)
    found = compare_blocks([1.0] * 10, after, builds=ONE_BUILD, build_noise=noise, **RULES)
    own = float(np.log(after).std(ddof=1)) ** 2 / 10
    whole = own + 2 * 0.01**2
    assert found.nested
    assert found.build_noise == 0.01
    assert found.degrees == pytest.approx(whole**2 / (own**2 / 9 + (2 * 0.01**2) ** 2 / 3))
    assert found.half_width > 3 * plain.half_width
    assert found.change == plain.change

    several = [(1, number) for number in range(2, 12)]
    half = compare_blocks([1.0] * 10, after, builds=several, build_noise=noise, **RULES)
    assert plain.half_width < half.half_width < found.half_width


@pytest.mark.parametrize(
    "builds", [[], [(1, 1)] * 10, [(0, 2)] * 10, [(build, build + 9) for build in range(1, 11)]]
)
def test_equal_unknown_or_several_builds_get_no_known_noise(builds):
    after = draw_after()
    plain = compare_blocks([1.0] * 10, after, builds=builds, **RULES)
    noise = build_noise(0.01)
    assert compare_blocks([1.0] * 10, after, builds=builds, build_noise=noise, **RULES) == plain


def test_many_comparisons_add_it_as_single_ones_do():
    after, noise = draw_after(), build_noise(0.005)
    cells = [
        ComparisonInput(
            baseline=[1.0] * 10, contender=after, builds=builds, build_noise=known, **RULES
        )
        for builds in (ONE_BUILD, [])
        for known in (noise, None)
    ]
    for cell, found in zip(cells, compare_many(cells), strict=True):
        alone = compare_blocks(
            cell.baseline, after, builds=cell.builds, build_noise=cell.build_noise, **RULES
        )
        assert (found.build_noise, found.nested) == (alone.build_noise, alone.nested)
        assert (found.half_width, found.degrees) == pytest.approx((alone.half_width, alone.degrees))


@pytest.mark.parametrize("between", [0.005, 0.01, 0.02])
def test_with_a_calibration_single_builds_cause_few_false_changes(between):
    rng = np.random.default_rng([69, round(1000 * between)])
    found = measure_calibrated(rng, 500, Variation(0.01, between, 1))
    assert found.claimed <= 0.05
