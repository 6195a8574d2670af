"""However a step ends, what it started ends with it."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_load,
    a_plan,
    a_trial,
    is_running,
    pids_in,
)
from tests.support.waiting import wait_until

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and prctl")

#: A server with a child, and one whose own child has a separate session; all write their pids.
FAMILY = """
nap = "import os, time; open('pids', 'a').write(f'{os.getpid()}\\\\n'); time.sleep(300)"
fork = (
    "import subprocess, sys;"
    f"subprocess.Popen([sys.executable, '-c', {nap!r}], start_new_session=True)"
)
open('pids', 'a').write(f'{os.getpid()}\\n')
subprocess.Popen([sys.executable, '-c', nap])
subprocess.Popen([sys.executable, '-c', fork + '\\n' + nap])
"""
FAMILY_SIZE = 4
NAP = "__import__('time').sleep(300)"


def start_family(host: AgentHost, **plan: float) -> tuple[Step, list[int]]:
    """A step in the middle of its load, and the pids of its server's whole tree and of its tool."""
    host.send_source({"server.py": SERVER.format(extra=FAMILY)})
    busy = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
    load = a_load("{python}", "-c", busy, "{trial_dir}/tool.pid", wall_limit_s=200)
    step = host.start(a_plan(a_trial(host.send_tool(), loads=[load]), **plan))
    tool = pids_in(step.folder / "trials/t1/tool.pid", 1)
    tree = pids_in(host.root / "builds/c0ffee-r/tree/pids", FAMILY_SIZE)
    assert all(map(is_running, tree + tool))
    return step, tree + tool


@linux
def test_a_dropped_trial_ends_and_later_dropped_trials_are_skipped(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra="")})
    tool = host.send_tool()
    busy = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
    load = a_load("{python}", "-c", busy, "{trial_dir}/tool.pid", wall_limit_s=200)
    trials = [
        a_trial(tool, id="t1", loads=[load]),
        *(a_trial(tool, id=name) for name in ("t2", "t3")),
    ]
    step = host.start(a_plan(*trials))
    pids = pids_in(step.folder / "trials/t1/tool.pid", 1)
    assert step.read_status()["dropped"] == 0
    (step.folder / "dropped.json").write_text('["t1", "t2"]')
    step.await_end()
    assert step.read_status()["dropped"] == 2
    assert (step.only("trial_failed")["trial"], step.only("trial_failed")["code"]) == (
        "t1",
        "cancelled",
    )
    assert step.only("trial_dropped")["trial"] == "t2"
    assert step.only("trial_done")["trial"] == "t3"
    wait_for_end(pids)


def wait_for_end(pids: list[int]) -> None:
    wait_until(lambda: not any(map(is_running, pids)), "some of what the step started lives on")


@linux
def test_stop_ends_a_step_and_all_of_its_processes(host: AgentHost) -> None:
    step, pids = start_family(host)
    assert step.read_status()["alive"] is True
    assert host.verb("stop", step.job, step.name) == {"stopped": True}
    assert not any(map(is_running, [*pids, step.pid]))
    step.read_status()
    assert step.alive is False
    aborted = step.only("aborted")
    assert (aborted["code"], aborted["reason"]) == ("stopped", "stopped")
    assert host.verb("stop", step.job, step.name) == {"stopped": False}


@linux
def test_sigterm_ends_a_step_in_order(host: AgentHost) -> None:
    step, pids = start_family(host)
    os.kill(step.pid, signal.SIGTERM)
    step.await_end()
    assert step.only("aborted")["reason"] == "stopped"
    wait_for_end(pids)


@linux
def test_a_step_ends_when_the_orchestrator_is_silent(host: AgentHost) -> None:
    step, pids = start_family(host, silence_s=2.0)
    wait_for_end(pids)
    step.await_end()
    assert step.only("aborted")["reason"] == "silence"


def test_a_step_continues_while_the_orchestrator_polls(host: AgentHost) -> None:
    slow = a_trial(host.send_tool(), cooldown_s=3.0)
    step = host.start(a_plan(slow, silence_s=1.5))
    step.poll_until_end()
    assert step.only("trial_done")
    assert not step.named("aborted")


@linux
def test_a_killed_supervisor_is_detected(host: AgentHost) -> None:
    step, pids = start_family(host)
    server, tool = pids[0], pids[-1]
    os.kill(step.pid, signal.SIGKILL)
    wait_for_end([step.pid, server, tool])
    status = step.read_status()
    assert status["alive"] is False
    assert status["started"] is True
    assert not step.named("aborted")
    # Those that were not its direct children are found by their environment.
    host.verb("stop", step.job, step.name)
    wait_for_end(pids)


@linux
def test_stop_all_ends_every_step_of_the_work_directory(host: AgentHost) -> None:
    step, pids = start_family(host)
    assert host.verb("stop-all") == {"stopped": ["j1/a1-r1"]}
    assert not any(map(is_running, [*pids, step.pid]))
    assert host.verb("stop-all") == {"stopped": []}


@linux
def test_stop_ends_processes_of_a_killed_supervisor(host: AgentHost) -> None:
    step, pids = start_family(host)
    os.kill(step.pid, signal.SIGKILL)
    wait_for_end([step.pid])
    assert any(map(is_running, pids))
    assert host.verb("stop-all") == {"stopped": ["j1/a1-r1"]}
    assert not any(map(is_running, pids))


@linux
def test_processes_of_a_killed_supervisor_end_before_the_next_step(host: AgentHost) -> None:
    step, pids = start_family(host)
    os.kill(step.pid, signal.SIGKILL)
    wait_for_end([step.pid])
    assert any(map(is_running, pids))
    host.run_round(a_plan(job="j2"))
    assert not any(map(is_running, pids))


def test_silence_ends_a_step_during_a_build(host: AgentHost) -> None:
    nap = [sys.executable, "-c", "open('pid', 'w').write(str(__import__('os').getpid()));" + NAP]
    step = host.start(a_plan(builds=[a_build(steps=[nap])], silence_s=1.0))
    pids = pids_in(host.root / "builds/c0ffee-r/tree/pid", 1)
    wait_for_end(pids)
    step.await_end()
    aborted = step.only("aborted")
    assert (aborted["code"], aborted["reason"]) == ("silence", "silence")


def test_stop_ends_a_build(host: AgentHost) -> None:
    nap = [sys.executable, "-c", "open('pid', 'w').write(str(__import__('os').getpid()));" + NAP]
    step = host.start(a_plan(builds=[a_build(steps=[nap])]))
    pids = pids_in(host.root / "builds/c0ffee-r/tree/pid", 1)
    assert host.verb("stop", step.job, step.name) == {"stopped": True}
    assert not any(map(is_running, pids))
    again = host.run_round(a_plan(step="a1-r2", builds=[a_build()]))
    assert again.only("build_done")["cached"] is False


@linux
def test_no_process_of_a_server_outlives_its_trial(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra=FAMILY)})
    step = host.run_round(a_plan(a_trial(host.send_tool()), a_trial("tools/fake", id="t2")))
    assert len(step.named("trial_done")) == 2
    wait_for_end(pids_in(Path(host.root, "builds/c0ffee-r/tree/pids"), FAMILY_SIZE))
