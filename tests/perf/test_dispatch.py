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
    # In the short form the services may use less than a tick of the clock.
    assert all(value >= 0 for value in answer["measured"].values())
    assert answer["measured"]["matrix_to_shell_loop"] > 0
    assert answer["measured"]["fleet_starts_a_minute"] > 0
