"""A round keeps the machine awake where the system allows it, and never longer than it lasts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.hostagent.platform.sleep_inhibitor import inhibit_sleep

#: Like systemd-inhibit, it runs a command while it holds the lock: here, a file.
PROGRAM = """#!/bin/sh
echo "$@" > {folder}/arguments
while [ "$1" != cat ]; do shift; done
touch {folder}/held
"$@"
rm {folder}/held
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "systemd-inhibit"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def wait_until(held: Path, expected: bool) -> None:
    deadline = time.monotonic() + 10
    while held.exists() is not expected:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_lock_is_held_for_the_block(folder: Path) -> None:
    with inhibit_sleep():
        wait_until(folder / "held", True)
    assert not (folder / "held").exists()
    assert "--what=sleep:idle --mode=block" in (folder / "arguments").read_text()


def test_the_lock_ends_with_a_killed_supervisor(folder: Path) -> None:
    code = (
        "import time\n"
        "from agents.hostagent.platform.sleep_inhibitor import inhibit_sleep\n"
        "with inhibit_sleep():\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as holder:
        wait_until(folder / "held", True)
        holder.kill()
    wait_until(folder / "held", False)


def test_a_block_runs_without_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with inhibit_sleep():
        pass
    refusing = tmp_path / "systemd-inhibit"
    refusing.write_text("#!/bin/sh\necho Access denied >&2\nexit 1\n")
    refusing.chmod(0o755)
    with inhibit_sleep():
        pass
