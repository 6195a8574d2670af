"""Every load by hand: the tool ends well, and its own figures can be read."""

import os

import pytest

from devstack.processes import find_descendants
from perf.fidelity.direct import DirectRunError, PinnedCpus, run_directly
from perf.fidelity.extent import SHORT
from perf.fidelity.loads import LOADS
from perf.fidelity.target import build_target
from tests.support.programs import program, tool

CPUS = tuple(os.sched_getaffinity(0))
PINNED = PinnedCpus(server=CPUS, tool=CPUS)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    program("go")
    return build_target(tmp_path_factory.mktemp("target"))


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.key)
def test_a_direct_run_reads_the_tool_output_and_leaves_no_process(load, target, tmp_path):
    before = set(find_descendants(os.getpid()))
    figures = run_directly(load, tool(load.tool), target, SHORT, PINNED, tmp_path)
    assert figures.rate > 0
    assert 0 < figures.p50 < figures.p99
    assert set(find_descendants(os.getpid())) <= before
    assert not list(tmp_path.iterdir())


def test_a_direct_run_reports_how_a_tool_failed(target, tmp_path):
    wrk = next(load for load in LOADS if load.tool == "wrk")
    with pytest.raises(DirectRunError, match="wrk ended with 2"):
        run_directly(wrk, tool("oha"), target, SHORT, PINNED, tmp_path)
