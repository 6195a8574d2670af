"""The benchmark of fidelity works with one of its loads; its values are not checked.

The others are started directly (test_fidelity_direct.py), and through Pitwall by engine tests.
"""

import pytest

from perf.fidelity.known_latency import DELAYS, LOADS, PERCENTILES
from tests.support.benchmarks import run_benchmark

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_fidelity_benchmark_reports_a_value_for_every_target():
    answer = run_benchmark("fidelity", "--pairs", "1", "--only", "wrk", timeout_s=300)
    measured = answer["measured"]
    assert measured.keys() == answer["wanted"].keys()
    ratios = {key for key in measured if key.endswith("_ratio")}
    assert len(ratios) == 6
    assert all(measured[key] > 0 for key in ratios)
    assert measured["sampler_percent_of_a_core"] > 0


def test_errors_at_known_latencies_are_reported_for_every_tool():
    measured = run_benchmark("fidelity", "--part", "known", "--short", timeout_s=500)["measured"]
    keys = {f"known_{tool}_{delays}_{p}_error" for tool in LOADS for delays in DELAYS
            for p in PERCENTILES}  # fmt: skip
    assert keys <= measured.keys()
    # No tool can measure less than the server waited.
    assert all(measured[key] > -0.02 for key in keys if key.endswith("p50_error"))


def test_detected_false_answers_are_counted_for_every_tool():
    measured = run_benchmark("fidelity", "--part", "false", "--short", timeout_s=500)["measured"]
    assert measured.keys() == {f"{tool}_false_answers_detected" for tool in LOADS}
    assert all(0 <= value <= 1 for value in measured.values())


def test_the_overhead_of_a_trial_is_reported():
    measured = run_benchmark("fidelity", "--part", "overhead", timeout_s=300)["measured"]
    assert measured.keys() == {
        "overhead_per_trial_s",
        "overhead_within_round_s",
        "overhead_between_rounds_s",
    }
    assert all(value > 0 for value in measured.values())
