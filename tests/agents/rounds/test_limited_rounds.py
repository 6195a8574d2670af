"""Limits and tuning of a whole round, by the agent's command line.

The kernel is the real one, except for the file of ASLR.
"""

import os
import signal
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
#: Mounts a file over that of the kernel, for the agent and all that it starts.
BIND = f'mount --bind "$0" {ASLR} && exec "$@"'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def aslr(host: AgentHost, tmp_path: Path) -> Path:
    """The ASLR of the host alone: that of the machine is a fact of the hosts of other tests."""
    file = tmp_path / "aslr"
    file.write_text("2\n")
    host.wrapper = ("unshare", "--mount", "sh", "-c", BIND, str(file))
    return file


def list_groups(pid: int) -> list[Path]:
    return list(GROUPS.glob(f"**/pitwall-*-{pid}-*"))


@needs_groups
def test_the_effect_of_limits_is_recorded(host: AgentHost) -> None:
    wanted = {"cpu_quota": 0.5, "memory_bytes": 256 * MB, "open_files": 128}
    server = a_server(limits=limits(share="server", **wanted))
    shares = {"a": [{"name": "server", "cpus": 1}]}
    step = host.run_round(a_plan(a_trial(host.send_tool(), server=server, shares=shares)))
    result = step.file("t1", "result.json")
    applied = result["limits"]["server"]
    assert {name: applied[name] for name in wanted} == wanted
    assert applied["cpus"] == result["placement"]["a"]["cpus"]["server"]
    assert len(applied["cpus"]) == 1
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


@needs_root
def test_the_host_is_tuned_only_during_a_round(host: AgentHost, aslr: Path) -> None:
    # The server sees the tuning, and changes it.
    seeing = f"""
import shutil
shutil.copy("{ASLR}", "seen")
with open("{ASLR}", "w") as file:
    file.write("1")
"""
    host.send_source({"server.py": SERVER.format(extra=seeing)})
    tuning = {"aslr": "off", "governor": "ludicrous"}
    step = host.run_round(a_plan(a_trial(host.send_tool()), tuning=tuning))
    assert step.only("tuned")["applied"] == {"aslr": "off"}
    assert list(step.only("tuned")["refused"]) == ["governor"]
    assert (host.root / "builds/c0ffee-r/tree/seen").read_text() == "0"
    result = step.file("t1", "result.json")
    assert result["hosts"]["a"]["tuning"]["applied"] == {"aslr": "off"}
    assert list(result["hosts"]["a"]["tuning"]["refused"]) == ["governor"]
    changed = {"aslr": f"{ASLR} is '1' instead of '0'"}
    assert result["loads"][0]["interference"]["a"]["changed_settings"] == changed
    assert "another program set" in step.only("untuned")["left"]["aslr"]
    assert aslr.read_text() == "1"
    assert not (host.root / "tuning.json").exists()


@needs_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_tuning_is_undone_however_the_supervisor_ends(
    host: AgentHost, aslr: Path, number: signal.Signals
) -> None:
    sleeping = a_load("{python}", "-c", "import time; time.sleep(300)", wall_limit_s=200)
    step = host.start(a_plan(a_trial(host.send_tool(), loads=[sleeping]), tuning={"aslr": "off"}))
    step.await_event("tuned")
    assert aslr.read_text() == "0"
    os.kill(step.pid, number)
    step.await_end()
    # A poll is contact enough; it is the only one that there is.
    wait_until(lambda: step.read_status() and aslr.read_text() == "2", "the host stays tuned")
    assert not (host.root / "tuning.json").exists()
