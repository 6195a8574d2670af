"""Loads that lack CPU: a starved load tool, and a neighbour that works on the server's core."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.hostagent.platform.limits import check_available_limits
from agents.hostagent.platform.placement import Share, place
from agents.hostagent.platform.system import read_topology
from orchestrator.comparisons.reasons import SHARED_HOST_NOTE
from orchestrator.dispatch.cpus import SERVER, TOOL
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from tests.support.busy_process import run_busy_process
from tests.support.planted_faults import Laboratory, codes, definition, reason

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.django_db]

SLOW = "{connections: 4, rate: 200, duration_s: 1.5, warmup_s: 0.2}"
#: Three times what the load tool can send with so little CPU.
FAST = "{connections: 4, rate: 2000, duration_s: 1.5, warmup_s: 0.2}"
STARVED = "limits: {generator: {cpu_quota: 0.02}}\n"
NEIGHBOUR = "loudneighbour"


@contextmanager
def neighbour(folder: Path) -> Iterator[None]:
    """A process that uses all that it gets of the CPUs that the server will have."""
    topology = read_topology()
    assert topology is not None
    cpus = place(topology, [Share(SERVER), Share(TOOL)]).cpus[SERVER]
    with run_busy_process(folder, NEIGHBOUR, cpus):
        yield


@pytest.fixture(scope="module")
def starved(lab: Laboratory) -> Run:
    return lab.measure("starved", definition(FAST, more=STARVED))


@pytest.fixture(scope="module")
def disturbed(lab: Laboratory, tmp_path_factory: pytest.TempPathFactory) -> Run:
    with neighbour(tmp_path_factory.mktemp("neighbour")):
        return lab.measure("disturbed", definition(SLOW))


@pytest.fixture(scope="module")
def disturbed_on_shared_host(lab: Laboratory, tmp_path_factory: pytest.TempPathFactory) -> Run:
    Host.objects.update(is_shared=True)
    try:
        with neighbour(tmp_path_factory.mktemp("neighbour")):
            return lab.measure("disturbed-shared", definition(SLOW))
    finally:
        Host.objects.update(is_shared=False)


@pytest.fixture(scope="module")
def left_alone(lab: Laboratory) -> Run:
    """As far as this machine leaves anybody alone."""
    return lab.measure("left-alone", definition(SLOW))


def test_a_load_tool_without_cpu_time_is_detected(
    lab: Laboratory, starved: Run, left_alone: Run
) -> None:
    if "cpu_quota" not in check_available_limits()[1]:
        assert "cannot enforce cpu_quota" in starved.message
        return
    trial = lab.trial(starved, "liar")
    assert "of its CPU quota of 0.02" in reason(trial, "tool_bound")
    assert "give the load tool more CPUs" in reason(trial, "tool_bound")
    text = reason(trial, "underdelivered")
    assert "of the offered 2000/s was answered correctly, the load tool did not keep up" in text
    lab.check_left_out(starved, lie="honest")
    assert not {"tool_bound", "quota_refused"} & codes(lab.trial(left_alone, "honest"))


def test_a_busy_neighbour_is_detected(lab: Laboratory, disturbed: Run, left_alone: Run) -> None:
    text = reason(lab.trial(disturbed, "liar"), "busy_neighbour")
    assert f"{NEIGHBOUR} " in text.partition("mostly")[2]
    assert "stop other programs on the host" in text
    lab.check_left_out(disturbed, lie="honest")
    # The other reasons depend on the machine, but this trial had no such neighbour.
    assert NEIGHBOUR not in str(lab.trial(left_alone, "honest").reasons)


def test_a_shared_host_keeps_trials_next_to_a_busy_neighbour(
    lab: Laboratory, disturbed_on_shared_host: Run
) -> None:
    liar, honest = lab.pair(disturbed_on_shared_host)
    for trial in (liar, honest):
        assert f"{NEIGHBOUR} " in reason(trial, "busy_neighbour")
        assert trial.validity == "suspect", trial.reasons
    report = lab.compare(disturbed_on_shared_host)
    (row,) = report.cases
    assert (row.excluded_blocks, row.suspect_blocks) == (0, 1)
    assert SHARED_HOST_NOTE in report.notes
