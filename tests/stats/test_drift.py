"""Sudden and slow drift of a host, and how often an unchanged host is suspected."""

import numpy as np
import pytest

from orchestrator.stats.drift import FIRST_VALUES, measure_drift, measure_slow_drift
from perf.detection.golden_runs import is_drift_reported, simulate_unchanged_host

QUIET = [100.0, 100.4, 99.6, 100.2, 99.8]


@pytest.mark.parametrize(
    ("value", "earlier", "allowed", "drifted"),
    [
        (104.9, [100, 100, 100], 0.05, False),
        (106, [100, 100, 100], 0.05, True),
        (94, [100, 100, 100], 0.05, True),
        (106, QUIET, 0.05, True),
        # t(1 − 0.0025, 4) = 5.6, and s of the logs is 2.4 %: 5.6 · 2.4 · √1.2 = 14.7 % as a log.
        (114, [97, 99, 100, 101, 103.5], 0.159, False),
        (118, [97, 99, 100, 101, 103.5], 0.159, True),
    ],
)
def test_a_value_outside_of_the_prediction_interval_has_drifted(
    value: float, earlier: list[float], allowed: float, drifted: bool
) -> None:
    drift = measure_drift(value, earlier, tolerance=0.05)
    assert drift is not None
    assert drift.allowed == pytest.approx(allowed, abs=0.01)
    assert drift.drifted is drifted
    assert (drift.low, drift.high) == (min(earlier), max(earlier))


def test_several_values_share_the_alpha() -> None:
    one, three = (
        measure_drift(100, [97, 99, 100, 101, 103], tolerance=0.01, values=values)
        for values in (1, 3)
    )
    assert one is not None
    assert three is not None
    assert three.allowed > one.allowed


def test_a_drift_is_confirmed_by_another_on_the_same_side() -> None:
    above, below, usual = (measure_drift(value, QUIET, tolerance=0.05) for value in (110, 90, 100))
    assert above is not None
    assert below is not None
    assert usual is not None
    assert above.is_confirmed_by(above)
    assert not above.is_confirmed_by(below)
    assert not above.is_confirmed_by(usual)


@pytest.mark.parametrize("earlier", [[], [100, 100], [0, 0, 0], [100, 0, 100]])
def test_without_a_reference_there_is_no_drift(earlier: list[float]) -> None:
    assert measure_drift(100, earlier, tolerance=0.05) is None


def test_a_slow_drift_needs_all_first_values() -> None:
    first = QUIET * (FIRST_VALUES // len(QUIET))
    assert measure_slow_drift(first[:-1], [110.0]) is None
    assert measure_slow_drift(first, []) is None
    assert measure_slow_drift(first, [110.0, 0.0]) is None
    later = measure_slow_drift(first, [101.0] * 30)
    assert later is not None
    assert later.drifted
    assert later.change == pytest.approx(0.0096, abs=1e-3), "1 % but for 0.9 to the power of 30"


def test_one_outlier_is_no_slow_drift() -> None:
    first = QUIET * (FIRST_VALUES // len(QUIET))
    slow = measure_slow_drift(first, [*first, 102.0])
    assert slow is not None
    assert not slow.drifted


def test_an_unchanged_host_is_hardly_ever_suspected() -> None:
    """Eight hosts for half a year each; `make bench-detection` simulates decades."""
    rng = np.random.default_rng(1)
    hosts = [simulate_unchanged_host(rng, noise, 180) for noise in (0.01, 0.03) for _ in range(4)]
    assert sum(host.quarantines for host in hosts) <= 1
    assert sum(host.slow_alarms for host in hosts) <= 1


@pytest.mark.parametrize("noise", [0.005, 0.03])
def test_a_drift_of_a_fifth_of_a_percent_is_reported_within_60_runs(noise: float) -> None:
    rng = np.random.default_rng(2)
    assert sum(is_drift_reported(rng, noise, begin=30) for _ in range(5)) >= 4
