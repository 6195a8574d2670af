"""Limits and tuning of a whole round, by the agent's command line, on the real kernel."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.hostagent.platform import limits as limits_module
from tests.agents.support import (
    SERVER,
    AgentHost,
    a_load,
    a_plan,
    a_server,
    a_trial,
    limits,
)
from tests.support.waiting import wait_until

ASLR = Path("/proc/sys/kernel/randomize_va_space")
GROUPS = Path("/sys/fs/cgroup")
MB = 1 << 20
needs_groups = pytest.mark.skipif(
    "memory_bytes" not in limits_module.check_available_limits()[1],
    reason="no control group can be made here (not root, nothing delegated)",
)
needs_aslr = pytest.mark.skipif(not os.access(ASLR, os.W_OK), reason="only root may set ASLR")


@pytest.fixture
def aslr() -> Iterator[str]:
    """The value of the real host, which is put back whatever happens."""
    before = ASLR.read_text()
    yield before
    ASLR.write_text(before)


def opposite(value: str) -> tuple[str, str]:
    """The word that changes ASLR, and what is in the file then."""
    return ("on", "2\n") if value == "0\n" else ("off", "0\n")


def list_groups(pid: int) -> list[Path]:
    return list(GROUPS.glob(f"**/pitwall-*-{pid}-*"))


@needs_groups
def test_the_effect_of_limits_is_recorded(host: AgentHost) -> None:
    wanted = limits(cpus=[0], cpu_quota=0.5, memory_bytes=256 * MB, open_files=128)
    step = host.run_round(a_plan(a_trial(host.send_tool(), server=a_server(limits=wanted))))
    applied = step.file("t1", "result.json")["limits"]["server"]
    assert {name: applied[name] for name in wanted} == wanted
    assert applied["refused"] == {}
    assert applied["mechanism"] in ("cgroup1", "cgroup2")
    assert list_groups(step.pid) == []


@needs_groups
def test_a_server_that_exceeds_its_memory_is_ended(host: AgentHost) -> None:
    greedy = "held = bytearray(200 << 20)\nfor at in range(0, 200 << 20, 4096): held[at] = 1"
    host.send_source({"server.py": SERVER.format(extra=greedy)})
    server = a_server(limits=limits(memory_bytes=64 * MB))
    step = host.run_round(a_plan(a_trial(host.send_tool(), server=server)))
    assert step.only("trial_failed")["code"] == "server_did_not_start"
    assert list_groups(step.pid) == []


@needs_groups
def test_stop_removes_the_cgroups_of_a_killed_supervisor(host: AgentHost) -> None:
    sleeping = a_load("{python}", "-c", "import time; time.sleep(300)", wall_limit_s=200)
    server = a_server(limits=limits(memory_bytes=256 * MB))
    step = host.start(a_plan(a_trial(host.send_tool(), server=server, loads=[sleeping])))
    wait_until(lambda: "measuring" in phases(step.read_status()["events"]), "no load")
    assert list_groups(step.pid)
    os.kill(step.pid, signal.SIGKILL)
    step.await_end()
    # The groups may be gone already: every agent of this machine removes those of dead supervisors.
    host.verb("stop", step.job, step.name)
    assert list_groups(step.pid) == []


def phases(events: list[dict]) -> set[str]:
    return {event.get("phase", "") for event in events}


@needs_aslr
def test_the_host_is_tuned_only_during_a_round(host: AgentHost, aslr: str) -> None:
    word, value = opposite(aslr)
    seeing = "import shutil; shutil.copy('/proc/sys/kernel/randomize_va_space', 'seen')"
    host.send_source({"server.py": SERVER.format(extra=seeing)})
    tuning = {"aslr": word, "governor": "ludicrous"}
    step = host.run_round(a_plan(a_trial(host.send_tool()), tuning=tuning))
    assert step.only("tuned")["applied"] == {"aslr": word}
    assert list(step.only("tuned")["refused"]) == ["governor"]
    assert (host.root / "builds/c0ffee-r/tree/seen").read_text() == value
    assert step.only("untuned")
    assert ASLR.read_text() == aslr
    assert not (host.root / "tuning.json").exists()


@needs_aslr
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_tuning_is_undone_however_the_supervisor_ends(
    host: AgentHost, aslr: str, number: signal.Signals
) -> None:
    word, value = opposite(aslr)
    sleeping = a_load("{python}", "-c", "import time; time.sleep(300)", wall_limit_s=200)
    step = host.start(a_plan(a_trial(host.send_tool(), loads=[sleeping]), tuning={"aslr": word}))
    step.await_event("tuned")
    assert ASLR.read_text() == value
    os.kill(step.pid, number)
    step.await_end()
    # A poll is contact enough; it is the only one that there is.
    wait_until(lambda: step.read_status() and ASLR.read_text() == aslr, "the host stays tuned")
    assert not (host.root / "tuning.json").exists()
