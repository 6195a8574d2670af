"""The benchmark of dispatch still works, in its shortest form; its figures are not looked at."""

import pytest

from tests.support.benchmarks import answer_of_benchmark
from tests.support.programs import program


@pytest.mark.engine
def test_it_ends_with_a_figure_for_everything_that_is_wanted():
    program("sshd")
    answer = answer_of_benchmark("dispatch", timeout_s=400)
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert all(value > 0 for value in answer["measured"].values())
