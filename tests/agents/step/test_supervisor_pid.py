"""Only a verified supervisor gets a signal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.hostagent import lock
from agents.hostagent.errors import Busy
from agents.hostagent.paths import StepDir
from agents.hostagent.platform.process_identity import read_boot_id, read_start_time
from agents.hostagent.step.supervisor_pid import read_pid, send_signal, write_own_pid
from tests.agents.support import AgentHost, a_plan, a_trial

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux's /proc")


@pytest.fixture
def step(tmp_path: Path) -> StepDir:
    step = StepDir(tmp_path, "j1", "a1-r1")
    step.path.mkdir(parents=True)
    return step


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_the_file_says_which_process_it_means(step: StepDir) -> None:
    write_own_pid(step)
    assert read_pid(step).pid == os.getpid()
    assert read_pid(step).is_this_process()


@pytest.mark.parametrize("wrong", ["start", "boot", "nothing"])
def test_a_process_that_only_has_the_same_pid_gets_no_signal(
    wrong: str, step: StepDir, bystander: subprocess.Popen[bytes]
) -> None:
    """As on a network file system: the step is locked, but its pid is that of another machine."""
    pid, boot = bystander.pid, read_boot_id()
    start = read_start_time(pid)
    words = {"start": (pid, 1, boot), "boot": (pid, start, "other"), "nothing": (pid,)}[wrong]
    step.pid_file.write_text(" ".join(map(str, words)))
    holder = lock.take(step.lock)
    assert holder is not None
    with pytest.raises(Busy, match="another machine or in another container"):
        send_signal(step, signal.SIGKILL)
    time.sleep(0.05)
    assert bystander.poll() is None
    os.close(holder)
    assert send_signal(step, signal.SIGKILL) is False, "nobody holds the lock"
    assert bystander.poll() is None


def test_a_verified_supervisor_gets_the_signal(
    step: StepDir, bystander: subprocess.Popen[bytes]
) -> None:
    pid = bystander.pid
    step.pid_file.write_text(f"{pid} {read_start_time(pid)} {read_boot_id()}")
    holder = lock.take(step.lock)
    assert holder is not None
    assert send_signal(step, signal.SIGTERM) is True
    assert bystander.wait(10) == -signal.SIGTERM
    os.close(holder)


def test_prepare_never_stops_a_step_of_another_host_of_pitwall(host: AgentHost) -> None:
    """Two installations with the same login and work directory."""
    step = host.start(a_plan(a_trial(host.send_tool(), cooldown_s=20.0), owner="first"))
    step.await_event("trial_done")
    error = host.verb("prepare", "--owner", "second")["error"]
    assert error["code"] == "busy"
    assert "another host of Pitwall uses this work directory" in error["message"]
    assert step.read_status()["alive"]
    assert host.verb("prepare", "--owner", "first")["stopped"] == ["j1/a1-r1"]
