"""Where a system has no fork, the supervisor is a program of its own; tried here without ours."""

import json
import subprocess
import sys

from tests.agents.support import AgentHost, Step, a_plan, a_trial

AGENT = """
import os, runpy, sys
del os.fork
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(host: AgentHost, step: Step) -> dict[str, object]:
    argv = [sys.executable, "-c", AGENT, str(host.program), "--root", str(host.root)]
    done = subprocess.run(
        [*argv, "start", step.job, step.name], capture_output=True, text=True, timeout=60
    )
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def test_a_detached_supervisor_outlives_its_starter(host: AgentHost) -> None:
    step = host.send_plan(a_plan(a_trial(host.send_tool())))
    step.pid = pid = start(host, step)["pid"]
    assert pid == int((step.folder / "supervisor.pid").read_text().split()[0])
    step.await_end()
    assert step.only("trial_done")["trial"] == "t1"
    assert step.only("round_done")
    assert start(host, step) == {"pid": pid, "already": True}


def test_the_reason_is_reported_if_no_supervisor_starts(host: AgentHost) -> None:
    step = host.send_plan(a_plan(a_trial(host.send_tool())))
    (step.folder / "supervisor.pid.part").mkdir()  # it cannot write its pid
    error = start(host, step)["error"]
    assert "supervisor.pid.part" in str(error)
