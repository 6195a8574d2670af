"""A process that the kernel does not end stops the round, and blocks nobody."""

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.hostagent.commands import stop
from agents.hostagent.errors import Aborted
from agents.hostagent.paths import StepDir
from agents.hostagent.platform import posix_processes
from agents.hostagent.platform.processes import MARK, Child
from tests.support.waiting import wait_until

#: A process that is frozen by version 1 of control groups is in state D, as one that waits for a
#: dead disk: SIGKILL ends it only when it is thawed.
FREEZER = Path("/sys/fs/cgroup/freezer")
#: Holds the lock of a step, as a supervisor does.
SUPERVISOR = """
import sys, time
from pathlib import Path
from agents.hostagent import lock
from agents.hostagent.paths import StepDir
from agents.hostagent.step.supervisor_pid import write_own_pid
step = StepDir(Path(sys.argv[1]), *sys.argv[2:])
held = lock.take(step.lock)
write_own_pid(step)
time.sleep(60)
"""
REPOSITORY = Path(__file__).parents[3]
NAP = [sys.executable, "-c", "import time; time.sleep(60)"]

pytestmark = pytest.mark.skipif(
    not os.access(FREEZER / "cgroup.procs", os.W_OK), reason="needs the freezer of control groups"
)


@pytest.fixture
def step(tmp_path: Path) -> StepDir:
    step = StepDir(tmp_path, "j1", "a1-r1")
    step.path.mkdir(parents=True)
    return step


@pytest.fixture
def child(step: StepDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    monkeypatch.setattr(posix_processes, "KILL_LIMIT_S", 0.3)
    env = {MARK: str(step.path)}
    with open(tmp_path / "out", "wb") as file:
        child = Child(NAP, cwd=tmp_path, env=env, stdout=file, stderr=file, name="server")
    yield child
    child.kill()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    group = FREEZER / f"pitwall-test-{os.getpid()}"
    group.mkdir()
    state = group / "freezer.state"
    try:
        (group / "cgroup.procs").write_text(str(pid))
        state.write_text("FROZEN")
        wait_until(lambda: state.read_text().strip() == "FROZEN", "it is not frozen")
        yield
    finally:
        state.write_text("THAWED")
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "it does not end")
        group.rmdir()


def test_an_unkillable_process_is_reported_with_its_state(child: Child) -> None:
    with frozen(child.pid):
        began = time.monotonic()
        with pytest.raises(Aborted) as caught:
            child.stop(grace_s=0.1)
        assert time.monotonic() - began < 5
        assert child.exit_code is None
    assert caught.value.code == "unkillable"
    assert f"process {child.pid} (python" in caught.value.message
    assert "state D)" in caught.value.message


def test_stop_reports_what_it_cannot_end(
    child: Child, step: StepDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "STOP_TIMEOUT_S", 0.2)
    monkeypatch.setattr(stop, "KILL_TIMEOUT_S", 0.2)
    options = Namespace(job=step.job, step=step.step)
    with frozen(child.pid):
        answer = stop.stop(step.root, options)
        assert answer["stopped"] is True
        assert answer["unkillable"].startswith("a process of the round does not end: process")
        assert f"{child.pid} (python" in answer["unkillable"]
    child.wait(5)
    assert stop.stop(step.root, options) == {"stopped": False}


def test_stop_reports_a_supervisor_that_does_not_end(
    step: StepDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "STOP_TIMEOUT_S", 0.2)
    monkeypatch.setattr(stop, "KILL_TIMEOUT_S", 0.2)
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, *map(str, (step.root, step.job, step.step))],
        cwd=REPOSITORY,
    )
    wait_until(step.pid_file.exists, "it does not start")
    with frozen(supervisor.pid):
        answer = stop.stop(step.root, Namespace(job=step.job, step=step.step))
        assert f"the agent does not end: process {supervisor.pid} (python" in answer["unkillable"]
    supervisor.wait(10)
