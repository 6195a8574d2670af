"""The soak still works, in its shortest form, and its eye for growing memory is right."""

import random

import pytest

from perf.soak.memory import estimate_growth
from tests.support.benchmarks import run_benchmark

MIB = 2**20


def samples(share_an_hour: float, *, seed: int = 1) -> list[tuple[float, int]]:
    """An hour of 100 MiB that first grow by half, as caches do, and then by this share; each
    garbage collection is a step down."""
    chance = random.Random(seed)
    usage = []
    for second in range(0, 3600, 2):
        warm = 50 + 50 * min(1.0, second / 900)
        saw = chance.gauss(0, 0.4) + (second % 300) / 300
        usage.append((float(second), int(MIB * (warm * (1 + share_an_hour * second / 3600) + saw))))
    return usage


def test_growing_memory_is_detected():
    flat, leaking = estimate_growth(samples(0.0)), estimate_growth(samples(0.05))
    assert flat.low < 0 < flat.high < 0.1
    assert 0.01 < leaking.low < leaking.share_an_hour < leaking.high
    assert abs(leaking.share_an_hour - 0.05) < 0.02
    with pytest.raises(ValueError, match="too few"):
        estimate_growth(samples(0.0)[:10])


@pytest.mark.engine
@pytest.mark.slow
def test_a_short_soak_loses_duplicates_and_leaves_nothing():
    answer = run_benchmark("soak", "--seed", "1", timeout_s=300)
    assert answer["met"], answer
    assert answer["measured"]["trials_measured"] > 0
    struck = [times for name, times in answer["measured"].items() if name.startswith("struck_")]
    assert len(struck) == 6
    assert min(struck) > 0
