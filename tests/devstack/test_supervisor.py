"""Real processes: every way in which a supervisor ends, and what is left then."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.filelock import try_lock
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("first", "second", "third")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that nobody has reaped yet is dead all the same.
    result = subprocess.run(["ps", "-p", str(pid), "-o", "stat="], capture_output=True, text=True)
    return result.stdout.strip()[:1] not in {"", "Z"}


def pids(folder: Path) -> list[int]:
    """The leaders and the children of their groups."""
    files = [folder / f"{name}.{kind}" for name in NAMES for kind in ("pid", "child")]
    return [int(file.read_text()) for file in files if file.exists() and file.read_text()]


def events(folder: Path) -> list[str]:
    path = folder / "events"
    return path.read_text().splitlines() if path.exists() else []


def start(folder: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.devstack.supervised", str(folder), mode],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # The tests may run under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts the program and waits until all its services run."""
    started = []

    def begin(mode: str = "plain") -> subprocess.Popen[str]:
        started.append(start(tmp_path, mode))
        wait_until((tmp_path / "up").exists)
        assert all(is_alive(pid) for pid in pids(tmp_path))
        assert len(pids(tmp_path)) == 6
        return started[0]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
    wait_until(lambda: not any(is_alive(pid) for pid in pids(tmp_path)))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_supervisor_stops_process_groups_in_reverse_order(supervised, tmp_path, signum):
    process = supervised()
    process.send_signal(signum)
    assert process.wait(timeout=60) == 128 + signum
    assert events(tmp_path) == ["third ends", "second ends", "closing", "first ends"]
    assert not any(is_alive(pid) for pid in pids(tmp_path))


def test_supervisor_treats_a_repeated_signal_as_one(supervised, tmp_path):
    process = supervised()
    process.send_signal(signal.SIGTERM)
    # Long enough that they are two, short enough on a machine that has much else to do.
    time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert events(tmp_path) == ["third ends", "second ends", "closing", "first ends"]


def test_supervisor_kills_everything_at_the_second_request(supervised, tmp_path):
    process = supervised("stubborn")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "second ends" in events(tmp_path))
    # Past the time in which two signals count as one request.
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 128 + signal.SIGINT
    assert not any(is_alive(pid) for pid in pids(tmp_path))
    assert "first ends" not in events(tmp_path)
    # What is not ours to kill is asked to end all the same.
    wait_until(lambda: "closing" in events(tmp_path))


def test_a_killed_supervisor_leaves_no_process(supervised, tmp_path):
    process = supervised()
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in pids(tmp_path)))
    wait_until(lambda: "closing" in events(tmp_path))


def test_supervisor_holds_the_lock_until_the_last_child_is_gone(supervised, tmp_path):
    process = supervised()
    assert try_lock(tmp_path / "lock") is None
    process.kill()
    process.wait()
    taken: list[int | None] = []
    wait_until(lambda: taken.append(try_lock(tmp_path / "lock")) or taken[-1] is not None)
    # The next holder of the lock finds the folder empty.
    assert not any(is_alive(pid) for pid in pids(tmp_path))
    os.close(taken[-1])


def test_supervisor_starts_a_service_again_that_died(supervised, tmp_path):
    process = supervised()
    before = int((tmp_path / "third.pid").read_text())
    orphan = int((tmp_path / "third.child").read_text())
    (tmp_path / "third.child").unlink()
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: int((tmp_path / "third.pid").read_text() or before) != before)
    assert not is_alive(orphan)
    process.send_signal(signal.SIGTERM)
    assert "third died (ended by SIGKILL)" in process.communicate(timeout=60)[0]


def test_supervisor_ends_everything_when_a_service_without_restarts_dies(supervised, tmp_path):
    process = supervised()
    os.kill(int((tmp_path / "first.pid").read_text()), signal.SIGKILL)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "first died (ended by SIGKILL)" in output
    assert not any(is_alive(pid) for pid in pids(tmp_path))


def test_supervisor_shows_the_log_of_a_service_that_does_not_start(tmp_path):
    process = start(tmp_path, "short-lived")
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "third did not start (exit status 3)" in output
    assert "I give up" in output
    assert events(tmp_path) == ["second ends", "closing", "first ends"]


def test_supervisor_runs_a_command_and_returns_its_status(tmp_path):
    process = start(tmp_path, "command")
    process.communicate(timeout=60)
    assert process.returncode == 5
    assert events(tmp_path) == ["command", "second ends", "closing", "first ends"]
