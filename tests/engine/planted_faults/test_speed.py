"""A starved load tool, a neighbour on the server's core, and servers that are too slow."""

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
#: As many requests as a server of 5 ms each cannot answer.
TOO_FAST = "{connections: 8, rate: 400, duration_s: 1.5, warmup_s: 0.3}"
#: Long enough to see a change, slow enough for any machine. Its honest trial shows what an
#: undisturbed one reports.
PATIENT = "{connections: 10, rate: 60, duration_s: 11, warmup_s: 0.3}"
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
def saturated(lab: Laboratory) -> Run:
    return lab.measure("saturated", definition(TOO_FAST, "queues"))


@pytest.fixture(scope="module")
def patient(lab: Laboratory) -> Run:
    return lab.measure("patient", definition(PATIENT, "slows", takes_s=0.02))


def test_a_load_tool_without_cpu_time_is_detected(
    lab: Laboratory, starved: Run, patient: Run
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
    assert not {"tool_bound", "quota_refused"} & codes(lab.trial(patient, "honest"))


def test_a_busy_neighbour_is_detected(lab: Laboratory, disturbed: Run, patient: Run) -> None:
    text = reason(lab.trial(disturbed, "liar"), "busy_neighbour")
    assert f"{NEIGHBOUR} " in text.partition("mostly")[2]
    assert "stop other programs on the host" in text
    lab.check_left_out(disturbed, lie="honest")
    # The other reasons depend on the machine, but this trial had no such neighbour.
    assert NEIGHBOUR not in str(lab.trial(patient, "honest").reasons)


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


def test_a_rate_that_cannot_be_reached_is_detected(
    lab: Laboratory, saturated: Run, patient: Run
) -> None:
    liar = lab.trial(saturated, "liar", lie="queues")
    text = reason(liar, "underdelivered")
    assert "of the offered 400/s was answered correctly, the server is saturated" in text
    assert "search for the capacity" in text
    assert "tool_bound" not in codes(liar)
    lab.check_left_out(saturated, lie="queues")
    # One hiccup of a busy machine at the end of the short load would be enough.
    assert "underdelivered" not in codes(lab.trial(patient, "honest", lie="slows"))


def test_a_server_that_slows_down_is_detected(lab: Laboratory, patient: Run) -> None:
    liar, honest = (
        lab.trial(patient, "liar", lie="slows"),
        lab.trial(patient, "honest", lie="slows"),
    )
    text = reason(liar, "no_steady_state")
    assert text.startswith("the p50 of the last third is ")
    assert "above that of the first" in text
    assert liar.validity in ("suspect", "invalid")
    assert not {"no_steady_state", "warm_up_too_short"} & codes(honest)
