"""The benchmark of fidelity works with one of its loads; its values are not checked.

The others are tried by hand (test_fidelity_by_hand.py), and through Pitwall by the engine's tests.
"""

import pytest

from tests.support.benchmarks import run_benchmark


@pytest.mark.engine
@pytest.mark.slow
def test_fidelity_benchmark_reports_a_value_for_every_target():
    answer = run_benchmark("fidelity", "--pairs", "1", "--only", "wrk", timeout_s=300)
    measured = answer["measured"]
    assert measured.keys() == answer["wanted"].keys()
    ratios = {key for key in measured if key.endswith("_ratio")}
    assert len(ratios) == 6
    assert all(measured[key] > 0 for key in ratios)
    assert measured["sampler_percent_of_a_core"] > 0
    assert 0 <= measured["wrk_false_answers_detected"] <= 1
