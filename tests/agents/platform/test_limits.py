"""Limits on real children: through control groups where this machine lets us make them."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.errors import AgentError
from agents.hostagent.platform import limits
from agents.hostagent.platform.limits import NONE, Confinement, Limits
from agents.hostagent.platform.linux import cgroups
from agents.hostagent.platform.linux.cgroup_hierarchies import find_hierarchy
from agents.hostagent.platform.processes import Child
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")


def _makes_groups() -> bool:
    hierarchy = find_hierarchy()
    try:
        group = cgroups.Group(hierarchy, ["cpu", "memory"]) if hierarchy else None
    except (OSError, KeyError):
        return False
    if group:
        group.remove()
    return group is not None


needs_groups = pytest.mark.skipif(
    not _makes_groups(), reason="no control group can be made here (not root, nothing delegated)"
)

#: Uses the CPU for 0.2 s, then says how long that took.
BUSY = """
import time
began, used = time.monotonic(), time.process_time()
while time.process_time() - used < 0.2:
    pass
print(time.monotonic() - began)
"""
EATER = (
    "held = bytearray({size})\nfor at in range(0, {size}, 4096): held[at] = 1\nprint('all of it')"
)
MB = 1 << 20


def run(folder: Path, code: str, limits: Limits = NONE) -> tuple[int, str, dict[str, Any]]:
    """Exit code, output and what was applied of a Python program with limits."""
    with open(folder / "out", "wb") as out:
        child = Child(
            [sys.executable, "-c", code],
            cwd=folder,
            env=dict(os.environ),
            stdout=out,
            stderr=subprocess.DEVNULL,
            limits=limits,
        )
        try:
            wait_until(lambda: child.exit_code is not None, "the child does not end")
        finally:
            child.kill()
    assert child.exit_code is not None
    return child.exit_code, (folder / "out").read_text(), child.applied


def run_without_groups(code: str, limits: Limits) -> tuple[str, dict[str, Any]]:
    """The same on a host where no control group can be made."""
    confinement = Confinement(limits, None)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=confinement.enter,
    )
    applied = confinement.applied()
    return process.communicate()[0], applied


def groups_left(pid: int | None = None) -> list[str]:
    """Return the control groups of a supervisor, by default those of this process."""
    hierarchy = find_hierarchy()
    mine = f"{cgroups.PREFIX}-{cgroups.read_namespace()}-{pid or os.getpid()}-*"
    return (
        [str(path) for folder in hierarchy.folders.values() for path in folder.glob(mine)]
        if hierarchy
        else []
    )


@needs_groups
def test_a_child_is_held_to_its_quota(tmp_path: Path) -> None:
    # Less than its share of a busy machine: a child that gets less than its quota is not throttled.
    code, out, applied = run(tmp_path, BUSY, Limits(cpu_quota=0.05))
    assert code == 0
    # It needs twenty times as long as it computes; a busy machine can only make it longer.
    assert float(out) / 0.2 > 10
    assert applied["cpu_quota"] == 0.05
    assert applied["throttled"] > 0
    assert applied["mechanism"] in ("cgroup1", "cgroup2")
    assert applied["refused"] == {}
    assert groups_left() == []


@needs_groups
def test_a_child_that_exceeds_its_memory_is_killed(tmp_path: Path) -> None:
    code, out, applied = run(tmp_path, EATER.format(size=100 * MB), Limits(memory_bytes=48 * MB))
    assert (code, out) == (-9, "")
    assert (applied["memory_bytes"], applied["oom_kills"]) == (48 * MB, 1)
    code, out, applied = run(tmp_path, EATER.format(size=20 * MB), Limits(memory_bytes=48 * MB))
    assert (code, out, applied["oom_kills"]) == (0, "all of it\n", 0)
    assert groups_left() == []


def test_a_child_is_bound_to_its_cpus(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    code, out, applied = run(
        tmp_path, "import os; print(os.sched_getaffinity(0))", Limits(cpus=(cpu,))
    )
    assert (code, out) == (0, f"{{{cpu}}}\n")
    assert applied["cpus"] == [cpu]
    assert applied["refused"] == {}


def test_open_files_are_limited(tmp_path: Path) -> None:
    opening = "import os\ntry:\n while True: last = os.dup(0)\nexcept OSError: print(last)"
    _code, out, applied = run(tmp_path, opening, Limits(open_files=64))
    assert int(out) == 63
    assert applied["open_files"] == 64


GROWS = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python itself ignores it
with open("file", "wb", 0) as file:
    for _ in range(3):
        file.write(bytes(1 << 20))
"""


def test_a_child_that_writes_a_huge_file_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FILE_BYTES", 2 * MB)
    code, _out, applied = run(tmp_path, GROWS)
    assert (applied["file_bytes"], (tmp_path / "file").stat().st_size) == (2 * MB, 2 * MB)
    monkeypatch.undo()
    assert "it wrote a file of more than 8 GiB" in limits.describe_exit(code)
    assert limits.describe_exit(1) == "1"


FORKS = """
import os, time
try:
    while os.fork():
        pass
    time.sleep(60)
except OSError:
    print("refused")
"""


@needs_groups
def test_a_fork_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROCESSES", 20)
    code, out, applied = run(tmp_path, FORKS, Limits(cpu_quota=1.0))
    assert (code, out, applied["processes"]) == (0, "refused\n", 20)
    assert applied["refused_forks"] >= 1
    assert groups_left() == []


def test_limits_that_apply_without_a_request_are_reported(tmp_path: Path) -> None:
    _code, _out, applied = run(tmp_path, "")
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert applied["open_files"] >= min(limits.OPEN_FILES, hard)
    assert (applied["file_bytes"], applied["user"]) == (limits.FILE_BYTES, None)
    assert applied["cpus"] == sorted(os.sched_getaffinity(0))
    assert applied["open_files"] > 0
    assert (applied["cpu_quota"], applied["memory_bytes"]) == (None, None)
    assert applied["refused"] == {}


def test_a_child_for_missing_cpus_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"4096.*the kernel refused it"):
        run(tmp_path, "print('ran')", Limits(cpus=(4096,)))
    assert not (tmp_path / "out").read_text()


def test_missing_cpus_are_reported(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    _code, _out, applied = run(tmp_path, "", Limits(cpus=(cpu, 4096)))
    assert applied["cpus"] == [cpu]
    assert str([cpu]) in applied["refused"]["cpus"]


def test_a_quota_is_refused_without_cgroups() -> None:
    out, applied = run_without_groups("print('ran')", Limits(cpu_quota=0.5))
    assert out == "ran\n"
    assert (applied["mechanism"], applied["cpu_quota"]) == ("affinity", None)
    assert "no control group" in applied["refused"]["cpu_quota"]


def test_memory_is_refused_without_cgroups() -> None:
    """No limit of the address space replaces it: V8, Go and the JVM reserve far more than they
    use."""
    reserve = "import mmap; mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | 0x4000); print('ran')"
    out, applied = run_without_groups(reserve, Limits(memory_bytes=400 * MB))
    assert out == "ran\n"
    assert applied["memory_bytes"] is None
    assert "no control group" in applied["refused"]["memory_bytes"]


def test_the_kernel_ends_a_child_before_its_supervisor(tmp_path: Path) -> None:
    _code, out, _applied = run(tmp_path, "print(open('/proc/self/oom_score_adj').read())")
    assert int(out) >= limits.OOM_SCORE > int(Path("/proc/self/oom_score_adj").read_text())


def test_cpus_are_bound_without_cgroups() -> None:
    cpu = max(os.sched_getaffinity(0))
    out, applied = run_without_groups(
        "import os; print(os.sched_getaffinity(0))", Limits(cpus=(cpu,))
    )
    assert out == f"{{{cpu}}}\n"
    assert applied["refused"] == {}


def test_a_limit_above_the_limit_of_the_user_is_reported() -> None:
    forbidden = int(Path("/proc/sys/fs/nr_open").read_text()) + 1
    out, applied = run_without_groups("print('ran')", Limits(open_files=forbidden))
    assert out == "ran\n"
    assert applied["open_files"] != forbidden
    assert "hard limit" in applied["refused"]["open_files"]


#: A supervisor with a limited child that has a child of its own in another session.
SUPERVISOR = """
import os, sys, time
from pathlib import Path
from agents.hostagent.platform.limits import Limits
from agents.hostagent.platform.processes import Child
nap = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
more = f"subprocess.Popen([sys.executable, '-c', {nap!r}], start_new_session=True)"
twice = f"import subprocess, sys; {more}; {nap}"
Child([sys.executable, "-c", twice], cwd=Path.cwd(), env=dict(os.environ), stdout=sys.stdout,
      stderr=sys.stderr, limits=Limits(cpu_quota=1.0))
time.sleep(300)
"""


@needs_groups
def test_cgroups_of_a_killed_supervisor_are_removed(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout
    pids = [int(supervisor.stdout.readline()) for _ in range(2)]
    supervisor.stdout.close()
    cgroups.remove_orphans()
    assert groups_left(supervisor.pid)
    supervisor.kill()
    supervisor.wait()
    # The agent of another test may remove them first.
    cgroups.remove_orphans()
    wait_until(lambda: not groups_left(supervisor.pid), "a group is left")
    wait_until(lambda: not any(map(_lives, pids)), "what was in the group lives on")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
