"""The benchmark of the API works in its shortest form; its values are not checked."""

import pytest

from tests.support.benchmarks import run_benchmark


@pytest.mark.engine
@pytest.mark.slow
def test_api_benchmark_reports_a_value_for_every_target():
    answer = run_benchmark("api", timeout_s=200)
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert all(value > 0 for value in answer["measured"].values())
