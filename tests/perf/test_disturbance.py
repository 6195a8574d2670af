"""The benchmark of disturbances works; its values are not checked."""

import pytest

from tests.support.benchmarks import run_benchmark


@pytest.mark.engine
@pytest.mark.slow
def test_disturbance_benchmark_reports_the_effect_of_each_share():
    answer = run_benchmark("disturbance", "--short", timeout_s=300)
    measured = answer["measured"]
    assert measured.keys() == answer["wanted"].keys()
    for load in ("oha_closed", "oha_rate"):
        for share in (0, 100):
            assert measured[f"{load}_{share}_percent_beyond_margin"] >= 0
            assert 0 <= measured[f"{load}_{share}_percent_flagged"] <= 1
        alone, disturbed = (measured[f"{load}_{share}_percent_observed"] for share in (0, 100))
        assert alone < disturbed
