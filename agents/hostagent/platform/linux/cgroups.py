"""Control groups of Linux: a group for one child, with limits (cgroup_hierarchies.py says where).

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

from .cgroup_hierarchies import Place, find, text_of

PREFIX = "pitwall"
PERIOD_US = 100_000
#: What v1 says of a memory limit that is none: the largest multiple of a page.
_UNLIMITED = 1 << 62
#: Long enough for a child to have entered the group that was made for it.
_SETTLED_S = 60.0
_REMOVAL_S = 2.0
_numbers = itertools.count(1)


class Group:
    """A group with limits. Made by the supervisor, entered by the child, removed at the end."""

    def __init__(self, place: Place, controllers: Iterable[str]) -> None:
        """Raises OSError where it cannot be made."""
        self._version = place.version
        self.mechanism = place.mechanism
        self._made: list[Path] = []
        self._folders: dict[str, Path] = {}
        name = f"{PREFIX}-{namespace()}-{os.getpid()}-{next(_numbers)}"
        for controller in controllers:
            parent = place.folders[controller]
            if self._version == 2:
                _make_room(parent)
                _enable(parent, controller)
            self._folders[controller] = self._make(parent / name)

    def _make(self, folder: Path) -> Path:
        if folder not in self._made:
            folder.mkdir()
            self._made.append(folder)
        return folder

    def set_cpus(self, cpus: Iterable[int]) -> None:
        folder = self._folders["cpuset"]
        if self._version == 1:  # a cpuset without memory nodes takes no process
            (folder / "cpuset.mems").write_text(text_of(folder.parent / "cpuset.mems"))
        (folder / "cpuset.cpus").write_text(",".join(map(str, cpus)))

    def set_quota(self, cpus: float) -> None:
        folder, microseconds = self._folders["cpu"], round(cpus * PERIOD_US)
        if self._version == 2:
            (folder / "cpu.max").write_text(f"{microseconds} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(microseconds))

    def set_memory(self, size: int) -> None:
        """Memory without swap: what does not fit is killed and not slowly paged out."""
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

    def quota(self) -> Optional[float]:
        """CPUs, as the kernel has it; None = no quota."""
        folder = self._folders.get("cpu")
        if folder is None:
            return None
        if self._version == 2:
            quota, period = text_of(folder / "cpu.max").split()
        else:
            quota = text_of(folder / "cpu.cfs_quota_us")
            period = text_of(folder / "cpu.cfs_period_us")
        return None if quota in ("max", "-1") else int(quota) / int(period)

    def memory(self) -> Optional[int]:
        folder = self._folders.get("memory")
        if folder is None:
            return None
        name = "memory.max" if self._version == 2 else "memory.limit_in_bytes"
        text = text_of(folder / name)
        return None if text == "max" or int(text) >= _UNLIMITED else int(text)

    def processes(self) -> Optional[int]:
        """How many processes and threads it may have; None = no limit."""
        folder = self._folders.get("pids")
        text = text_of(folder / "pids.max") if folder else "max"
        return int(text) if text.isdigit() else None

    def throttled(self) -> Optional[int]:
        """In how many periods the quota was used up."""
        folder = self._folders.get("cpu")
        return _count(folder / "cpu.stat", "nr_throttled") if folder else None

    def oom_kills(self) -> Optional[int]:
        folder = self._folders.get("memory")
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        return _count(folder / name, "oom_kill") if folder else None

    def refused_forks(self) -> Optional[int]:
        """How often it was refused another process or thread."""
        folder = self._folders.get("pids")
        return _count(folder / "pids.events", "max") if folder else None

    def enter(self) -> dict[str, str]:
        """Move the calling process in; why not, by controller, where the kernel refuses."""
        refused = {}
        for controller, folder in self._folders.items():
            try:
                (folder / "cgroup.procs").write_text("0")
            except OSError as error:
                refused[controller] = f"its control group cannot be entered ({error.strerror})"
        return refused

    def members(self) -> set[int]:
        return {pid for folder in self._made for pid in _members(folder)}

    def remove(self) -> None:
        """Kill whoever is in it, and remove it."""
        for folder in self._made:
            _remove(folder, time.monotonic() + _REMOVAL_S)
        self._made = []


def remove_left(system: Path = Path("/")) -> list[str]:
    """Remove the groups of supervisors that are no more; the names of those removed.

    Pids of another pid namespace say nothing here: a group from there goes if it is empty and
    not just made.
    """
    place = find(system)
    removed = []
    for parent in set(place.folders.values()) if place else ():
        for folder in sorted(parent.glob(f"{PREFIX}-*-*-*")):
            if _is_left(folder) and _remove(folder, time.monotonic() + _REMOVAL_S):
                removed.append(folder.name)
    return removed


def _is_left(folder: Path) -> bool:
    found = re.fullmatch(rf"{PREFIX}-(\d+)-(\d+)-\d+", folder.name)
    if not found:
        return False
    if found.group(1) == namespace():
        return not _is_alive(int(found.group(2)))
    with contextlib.suppress(OSError):
        made_s = time.time() - folder.stat().st_mtime
        return made_s > _SETTLED_S and not text_of(folder / "cgroup.procs")
    return False


def _is_alive(pid: int) -> bool:
    """False also for a process that has ended and that nobody has collected yet."""
    state = text_of(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def namespace() -> str:
    """The number of our pid namespace; hosts that share a kernel have the same pids."""
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return "0"


def _make_room(folder: Path) -> None:
    """Leave a group that is to be divided, where we are alone in it: v2 forbids both at once."""
    is_root = not (folder / "cgroup.type").exists()
    if not is_root and text_of(folder / "cgroup.procs").split() == [str(os.getpid())]:
        room = folder / f"{PREFIX}-{namespace()}-{os.getpid()}-0"
        room.mkdir()
        (room / "cgroup.procs").write_text("0")


def _enable(folder: Path, controller: str) -> None:
    control = folder / "cgroup.subtree_control"
    if controller not in text_of(control).split():
        control.write_text(f"+{controller}")


def _remove(folder: Path, deadline: float) -> bool:
    while True:
        for pid in _members(folder):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return False
        except OSError:  # the killed are not gone yet
            if time.monotonic() > deadline:
                return False
        time.sleep(0.005)


def _members(folder: Path) -> set[int]:
    """Processes in the group; 0 stands for those that our pid namespace does not see."""
    return {int(word) for word in text_of(folder / "cgroup.procs").split()} - {0, os.getpid()}


def _count(path: Path, key: str) -> Optional[int]:
    found = re.search(rf"^{key} (\d+)$", text_of(path), re.MULTILINE)
    return int(found.group(1)) if found else None
