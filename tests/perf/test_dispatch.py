"""The benchmark of dispatch works in its shortest form; its values are not checked."""

import pytest

from tests.support.benchmarks import run_benchmark
from tests.support.programs import program


@pytest.mark.engine
@pytest.mark.slow
def test_dispatch_benchmark_reports_a_value_for_every_target():
    program("sshd")
    answer = run_benchmark("dispatch", timeout_s=400)
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert all(value > 0 for value in answer["measured"].values())
