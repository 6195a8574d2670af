"""Trials wait while other processes use the host, with real processes that use it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.hostagent.hosts.all_hosts import AllHosts
from agents.hostagent.monitoring.environment import ENVIRONMENT_S
from agents.hostagent.step.plan import QuietRule, Trial
from agents.hostagent.trials import quiet_wait
from agents.hostagent.trials.quiet_wait import QuietWait
from agents.hostagent.trials.trial_progress import TrialProgress
from tests.agents.support import (
    FAKE_TOOL,
    SERVER,
    AgentHost,
    Step,
    a_load,
    a_plan,
    a_tool,
    a_trial,
)
from tests.support.waiting import wait_until

#: A tool that uses a CPU for half a second, and leaves what the agent expects.
BUSY_TOOL = (
    FAKE_TOOL
    + """
import time
while time.process_time() < 0.5:
    pass
"""
)
#: Every measurement of a host that is not completely idle is above this share.
NEVER_QUIET = 0.0001
#: A busy process next to a trial has a larger share of all CPUs. The work of a quiet machine has a
#: smaller one, although it took up to 35 of the 150 ms that are measured.
NEIGHBOUR_SHARE = 0.4 / (os.cpu_count() or 1)
#: Its arguments: the CPU time between two pauses, and the duration of a pause, in seconds.
WORK = """
import sys, time
work_s, pause_s = map(float, sys.argv[1:])
end = time.monotonic() + 120
while time.monotonic() < end:
    until = time.process_time() + work_s
    while time.process_time() < until:
        pass
    time.sleep(pause_s)
"""


@contextmanager
def run_other_process(work_s: float, pause_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that works and pauses in turn, for at most two minutes."""
    argv = [sys.executable, "-c", WORK, str(work_s), str(pause_s)]
    with subprocess.Popen(argv) as process:
        yield process
        process.kill()


@pytest.fixture
def busy_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses a whole CPU."""
    with run_other_process(work_s=1, pause_s=0) as process:
        yield process


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses less than a fourth of a CPU, as other tests need the rest."""
    with run_other_process(work_s=0.03, pause_s=0.1) as process:
        yield process


def build_plan(host: AgentHost, **quiet: float) -> dict[str, Any]:
    host.send_source({"server.py": SERVER.format(extra="")})
    tool = a_tool(host.send_tool())
    trial = a_trial("", id="t1", tool=tool, loads=[a_load("{tool}", "{out}", "{rows}")])
    return a_plan(trial, quiet=quiet)


def test_trial_waits_for_at_most_the_time_of_the_plan(host, other_process):
    step = host.run_round(build_plan(host, busy_share=NEVER_QUIET, wait_s=3.0))
    waits = step.named("host_busy")
    assert 1 <= len(waits) <= 5, step.events
    assert waits[0]["host"] == "a"
    assert waits[0]["busy_share"] > NEVER_QUIET
    assert waits[0]["foreign"][0]["cpu_s"] > 0
    assert {"name", "cpu_s"} == set(waits[0]["foreign"][0])
    assert waits[0]["quiet_s"] > 1
    assert step.only("trial_done")["trial"] == "t1"
    assert step.file("t1", "result.json")["hosts"]["a"]["busy_share"] > NEVER_QUIET


def test_host_is_measured_soon_and_then_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = {"a": {"busy_share": 0.5, "foreign": []}}
    times, waits = [0.0], []
    monkeypatch.setattr(quiet_wait, "time", SimpleNamespace(monotonic=lambda: times[-1]))
    all_hosts = SimpleNamespace(
        plan=SimpleNamespace(quiet=QuietRule(busy_share=0.1, wait_s=4.0)),
        step=SimpleNamespace(measure_now=SimpleNamespace(exists=lambda: False)),
        prepare=lambda trial: busy,
        observe=lambda: None,
        sleep_until=times.append,
        measure_environment=lambda: busy,
    )
    progress = SimpleNamespace(report_busy_host=lambda label, facts: waits.append(label))
    measured = QuietWait(cast(AllHosts, all_hosts)).prepare(
        cast(Trial, None), cast(TrialProgress, progress)
    )
    assert measured == busy
    assert times == [0.0, 0.25, 0.75, 1.75, 2.75, 3.75, 4.0]
    assert waits == ["a"] * 6


def test_busy_process_is_named(host, other_process):
    step = host.run_round(build_plan(host, busy_share=NEVER_QUIET, wait_s=1.0))
    names = {each["name"] for event in step.named("host_busy") for each in event["foreign"]}
    assert any(name.startswith("python") for name in names), names


@pytest.mark.quiet
def test_trial_starts_when_the_host_is_quiet(host, busy_process):
    limit = 0.5 / (os.cpu_count() or 1)
    step = host.start(build_plan(host, busy_share=limit, wait_s=100.0))
    step.await_event("host_busy")
    busy_process.kill()
    step.await_end()
    assert step.only("trial_done")["trial"] == "t1"
    assert step.file("t1", "result.json")["hosts"]["a"]["busy_share"] <= limit


def test_wait_ends_when_the_user_wants_to_measure_now(host, other_process):
    step = host.start(build_plan(host, busy_share=NEVER_QUIET, wait_s=600.0))
    step.await_event("host_busy")
    (step.folder / "measure_now").touch()
    step.await_end()
    assert step.only("trial_done")["trial"] == "t1"


def test_trial_without_a_wait_starts_at_once(host, other_process):
    step = host.run_round(build_plan(host, busy_share=NEVER_QUIET, wait_s=0))
    assert not step.named("host_busy")
    assert step.only("trial_done")


def run_two_trials(host: AgentHost, cooldown_s: float) -> Step:
    """Two trials with a busy tool, which do not wait."""
    trials = [
        a_trial(host.send_tool(BUSY_TOOL), id=name, cooldown_s=cooldown_s) for name in ("t1", "t2")
    ]
    step = host.start(a_plan(*trials))
    # A poll of the agent would be a neighbour, too.
    result = step.folder / "trials/t2/result.json"
    wait_until(result.exists, "no result of the second trial")
    step.await_end()
    return step


def get_share(step: Step, trial: str) -> float:
    share: float = step.file(trial, "result.json")["hosts"]["a"]["busy_share"]
    return share


@pytest.mark.parametrize("cooldown_s", [0.0, 0.4])
def test_neighbour_of_the_second_trial_is_seen_as_that_of_the_first(host, busy_process, cooldown_s):
    step = run_two_trials(host, cooldown_s)
    assert get_share(step, "t1") > NEIGHBOUR_SHARE
    assert get_share(step, "t2") > NEIGHBOUR_SHARE


@pytest.mark.quiet
@pytest.mark.parametrize("cooldown_s", [0.0, 1.0])
def test_trial_before_is_no_neighbour_and_the_cooldown_is_used(host, cooldown_s):
    step = run_two_trials(host, cooldown_s)
    assert get_share(step, "t2") < NEIGHBOUR_SHARE
    done = step.named("trial_done")[0]["t"]
    starting = [each["t"] for each in step.named("phase") if each["phase"] == "starting"]
    assert cooldown_s <= starting[1] - done < max(cooldown_s, ENVIRONMENT_S) + 0.2
