"""Control groups of Linux: a group for one child, with limits (see cgroup_hierarchies.py).

File formats: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from .cgroup_hierarchies import PREFIX, CgroupHierarchy, find_hierarchy, is_scope, read_text

PERIOD_US = 100_000
#: v1 reports a larger value, the largest multiple of a page, without a memory limit.
_UNLIMITED = 1 << 62
#: Enough time for a child to enter its group.
_SETTLED_S = 60.0
_REMOVAL_S = 2.0
_numbers = itertools.count(1)


class Group:
    """A group with limits: created by the supervisor, entered by the child, removed at the end."""

    def __init__(self, hierarchy: CgroupHierarchy, controllers: Iterable[str]) -> None:
        """Raises OSError if it cannot be created."""
        self._version = hierarchy.version
        self.mechanism = hierarchy.mechanism
        self._created: list[Path] = []
        self._folders: dict[str, Path] = {}
        name = f"{PREFIX}-{read_namespace()}-{os.getpid()}-{next(_numbers)}"
        for controller in controllers:
            parent = hierarchy.folders[controller]
            if self._version == 2:
                _move_to_subgroup(parent)
                _enable(parent, controller)
            self._folders[controller] = self._make(parent / name)

    def _make(self, folder: Path) -> Path:
        if folder not in self._created:
            folder.mkdir()
            self._created.append(folder)
        return folder

    def set_cpus(self, cpus: Iterable[int]) -> None:
        folder = self._folders["cpuset"]
        if self._version == 1:  # a cpuset without memory nodes takes no process
            (folder / "cpuset.mems").write_text(read_text(folder.parent / "cpuset.mems"))
        (folder / "cpuset.cpus").write_text(",".join(map(str, cpus)))

    def set_quota(self, cpus: float) -> None:
        folder, microseconds = self._folders["cpu"], round(cpus * PERIOD_US)
        if self._version == 2:
            (folder / "cpu.max").write_text(f"{microseconds} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(microseconds))

    def set_memory(self, size: int) -> None:
        """Limit memory without swap: a larger process is killed, not paged out slowly."""
        folder = self._folders["memory"]
        hard, swap = (
            ("memory.max", "memory.swap.max")
            if self._version == 2
            else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        )
        (folder / hard).write_text(str(size))
        with contextlib.suppress(OSError):  # kernels without accounting of swap lack the file
            (folder / swap).write_text("0" if self._version == 2 else str(size))

    def set_processes(self, count: int) -> None:
        (self._folders["pids"] / "pids.max").write_text(str(count))

    def cpus(self) -> Optional[list[int]]:
        """Return the CPUs that the group may use, read from the kernel; None without a CPU set."""
        folder = self._folders.get("cpuset")
        if folder is None:
            return None
        name = "cpuset.cpus.effective" if self._version == 2 else "cpuset.cpus"
        return parse_cpus(read_text(folder / name))

    def quota(self) -> Optional[float]:
        """Return the quota in CPUs, read from the kernel; None = no quota."""
        folder = self._folders.get("cpu")
        if folder is None:
            return None
        if self._version == 2:
            quota, _, period = read_text(folder / "cpu.max").partition(" ")
        else:
            quota = read_text(folder / "cpu.cfs_quota_us")
            period = read_text(folder / "cpu.cfs_period_us")
        return None if quota in ("", "max", "-1") else int(quota) / int(period)

    def memory(self) -> Optional[int]:
        folder = self._folders.get("memory")
        if folder is None:
            return None
        name = "memory.max" if self._version == 2 else "memory.limit_in_bytes"
        text = read_text(folder / name)
        return int(text) if text.isdigit() and int(text) < _UNLIMITED else None

    def processes(self) -> Optional[int]:
        """Return the limit of processes and threads; None = no limit."""
        folder = self._folders.get("pids")
        text = read_text(folder / "pids.max") if folder else "max"
        return int(text) if text.isdigit() else None

    def throttled(self) -> Optional[int]:
        """Return how many periods exhausted the quota."""
        folder = self._folders.get("cpu")
        return _count(folder / "cpu.stat", "nr_throttled") if folder else None

    def oom_kills(self) -> Optional[int]:
        folder = self._folders.get("memory")
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        return _count(folder / name, "oom_kill") if folder else None

    def refused_forks(self) -> Optional[int]:
        """Return how often the kernel refused another process or thread."""
        folder = self._folders.get("pids")
        return _count(folder / "pids.events", "max") if folder else None

    def peak_memory(self) -> Optional[int]:
        """Return the most memory that its processes used together, in bytes."""
        folder = self._folders.get("memory")
        name = "memory.peak" if self._version == 2 else "memory.max_usage_in_bytes"
        text = read_text(folder / name) if folder else ""
        return int(text) if text.isdigit() else None

    def enter(self) -> dict[str, str]:
        """Move the calling process into the group; return the reasons of refusals by controller."""
        refused = {}
        for controller, folder in self._folders.items():
            try:
                (folder / "cgroup.procs").write_text("0")
            except OSError as error:
                refused[controller] = f"its control group cannot be entered ({error.strerror})"
        return refused

    def members(self) -> set[int]:
        return {pid for folder in self._created for pid in _read_members(folder)}

    def remove(self) -> None:
        """Kill its processes, and remove it."""
        for folder in self._created:
            _remove(folder, time.monotonic() + _REMOVAL_S)
        self._created = []


def remove_orphans(system: Path = Path("/")) -> list[str]:
    """Remove the groups of dead supervisors; return their names.

    Pids of another pid namespace are unknown here: a group of another namespace is removed if it
    is empty and not new.
    """
    hierarchy = find_hierarchy(system)
    removed = []
    for parent in set(hierarchy.folders.values()) if hierarchy else ():
        removed += _end_orphaned_scopes(parent)
        for folder in sorted(parent.glob(f"{PREFIX}-*-*-*")):
            if _is_orphaned(folder) and _remove(folder, time.monotonic() + _REMOVAL_S):
                removed.append(folder.name)
    return removed


def _end_orphaned_scopes(own: Path) -> list[str]:
    """Kill the processes in scopes of dead supervisors; systemd then removes the scopes."""
    ended = []
    for scope in own.parent.glob(f"{PREFIX}-*.scope") if is_scope(own.name) else ():
        pid = scope.name[len(PREFIX) + 1 : -len(".scope")]
        if pid.isdigit() and not is_alive(int(pid)):
            for file in scope.rglob("cgroup.procs"):
                _kill_members(file.parent)
            ended.append(scope.name)
    return ended


def _is_orphaned(folder: Path) -> bool:
    match = re.fullmatch(rf"{PREFIX}-(\d+)-(\d+)-\d+", folder.name)
    if not match:
        return False
    if match.group(1) == read_namespace():
        return not is_alive(int(match.group(2)))
    with contextlib.suppress(OSError):
        age_s = time.time() - folder.stat().st_mtime
        return age_s > _SETTLED_S and not read_text(folder / "cgroup.procs")
    return False


def is_alive(pid: int) -> bool:
    """Return False also for a zombie."""
    state = read_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def read_namespace() -> str:
    """Return the number of our pid namespace: hosts that share a kernel can have equal pids."""
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return "0"


def _move_to_subgroup(folder: Path) -> None:
    """Leave the agent's group if it is alone in it: a v2 group has processes or subgroups."""
    is_root = not (folder / "cgroup.type").exists()
    if not is_root and read_text(folder / "cgroup.procs").split() == [str(os.getpid())]:
        subgroup = folder / f"{PREFIX}-{read_namespace()}-{os.getpid()}-0"
        subgroup.mkdir()
        (subgroup / "cgroup.procs").write_text("0")


def _enable(folder: Path, controller: str) -> None:
    control = folder / "cgroup.subtree_control"
    if controller not in read_text(control).split():
        control.write_text(f"+{controller}")


def _remove(folder: Path, deadline: float) -> bool:
    while True:
        _kill_members(folder)
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return False
        except OSError:  # the killed processes are not gone yet
            if time.monotonic() > deadline:
                return False
        time.sleep(0.005)


def _kill_members(folder: Path) -> None:
    for pid in _read_members(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _read_members(folder: Path) -> set[int]:
    """Return the processes in the group, without those of other pid namespaces (0)."""
    return {int(word) for word in read_text(folder / "cgroup.procs").split()} - {0, os.getpid()}


def parse_cpus(text: str) -> list[int]:
    """Return the CPUs of a list such as "0-2,7"."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def _count(path: Path, key: str) -> Optional[int]:
    match = re.search(rf"^{key} (\d+)$", read_text(path), re.MULTILINE)
    return int(match.group(1)) if match else None
