"""The limits of one child process, and which of them the kernel enforces.

CPU set, CPU quota and memory are limited by control groups (linux/cgroups.py). Without them the
CPU set becomes an affinity, and memory and CPU quota are not limited. A limit of the address space
is no replacement: engines such as V8, Go and the JVM reserve far more than they use. Open files are
a resource limit on all systems. A limit that is not enforced is in `refused` with its reason.

Limits are read back from the kernel at the start of the child and after the load. A limit that was
changed or lost in between is in `changed`.

In addition to the limits of a definition there are high limits against runaway processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from ..step.plan import Limits
from .affinity import set_child_affinity
from .linux import cgroups, systemd_scope
from .linux.cgroup_hierarchies import CgroupHierarchy, find_hierarchy, is_systemd_running

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: The size of one file, such as an endless log; also the limit of builds/archive.py.
FILE_BYTES = 8 << 30
#: Processes and threads: enough for a thread for each of 10,000 connections, and half of the usual
#: pid_max of 32,768. The limit of a control group, or of all processes of a separate user.
PROCESSES = 16_384
#: The default of open files: the 1,024 of a login are too few for 10,000 connections.
OPEN_FILES = 65_536

#: /proc/PID/oom_score_adj of children. Nobody needs a right to raise it; 1000 is the highest.
OOM_SCORE = 800

_CONTROLLER = {"cpus": "cpuset", "cpu_quota": "cpu", "memory_bytes": "memory"}


NONE = Limits()


class Confinement:
    """The limits of one child: created before it, entered by it, read back twice, removed."""

    def __init__(
        self,
        limits: Limits,
        hierarchy: Optional[CgroupHierarchy] = None,
        has_own_user: bool = False,
    ) -> None:
        """`hierarchy`: where control groups can be created; None = nowhere.

        `has_own_user`: the child runs as a separate user, whose processes can be limited together.
        """
        self._limits = limits
        self._has_own_user = has_own_user
        self._refused: dict[str, str] = {}
        self._group = self._make_group(hierarchy)
        self._changed: Optional[dict[str, str]] = None
        self._read, self._write = os.pipe()

    def _make_group(self, hierarchy: Optional[CgroupHierarchy]) -> Optional[cgroups.Group]:
        """Return the group with its limits; None if none can be created.

        In cgroup v2 each child has one, also without limits, so that its usage is counted. The
        several groups of v1 are created only for limits.
        """
        wanted = [name for name in _CONTROLLER if getattr(self._limits, name) is not None]
        offered = hierarchy.folders if hierarchy else {}
        supported = [name for name in wanted if _CONTROLLER[name] in offered]
        self._refused.update(
            {name: _describe_refusal(name) for name in wanted if name not in supported}
        )
        if hierarchy is None or not (supported or hierarchy.version == 2):
            return None
        try:
            return self._fill_group(hierarchy, supported)
        except OSError as error:
            self._refused.update({name: _describe_refusal(name, str(error)) for name in supported})
            return None

    def _fill_group(self, hierarchy: CgroupHierarchy, supported: list[str]) -> cgroups.Group:
        controllers = [_CONTROLLER[name] for name in supported]
        more = list(hierarchy.folders) if hierarchy.version == 2 else ["pids"]
        extra = [name for name in more if name in hierarchy.folders and name not in controllers]
        group = cgroups.Group(hierarchy, controllers + extra)
        if "pids" in hierarchy.folders:
            group.set_processes(PROCESSES)
        for name in supported:
            self._set(group, name)
        return group

    def _set(self, group: cgroups.Group, name: str) -> None:
        setters: dict[str, Callable[[Any], None]] = {
            "cpus": group.set_cpus,
            "cpu_quota": group.set_quota,
            "memory_bytes": group.set_memory,
        }
        try:
            setters[name](getattr(self._limits, name))
        except OSError as error:
            self._refused[name] = _describe_refusal(name, str(error))

    def enter(self) -> None:
        """Apply the limits in the child, before its program, and report the result.

        Raises OSError if it may run on none of its CPUs.
        """
        entered = self._group.enter() if self._group else {}
        refused = {
            name: _describe_refusal(name, entered[controller])
            for name, controller in _CONTROLLER.items()
            if controller in entered and getattr(self._limits, name) is not None
        }
        set_child_affinity(self._limits.cpus)
        refused.update(self._lower_resources())
        _raise_oom_score()
        os.write(self._write, json.dumps({"refused": refused, **_read_own_limits()}).encode())

    def _lower_resources(self) -> dict[str, str]:
        refused = ""
        if self._limits.open_files is not None:
            refused = _set_limit(resource.RLIMIT_NOFILE, self._limits.open_files)
        else:
            _raise_limit(resource.RLIMIT_NOFILE, OPEN_FILES)
        _cap_limit(resource.RLIMIT_FSIZE, FILE_BYTES)
        if self._has_own_user:
            _cap_limit(resource.RLIMIT_NPROC, PROCESSES)
        return {"open_files": refused} if refused else {}

    def abandon(self) -> None:
        """Clean up if the child could not be started."""
        os.close(self._write)
        os.close(self._read)
        self.close({})

    def applied(self) -> dict[str, Any]:
        """Return APPLIED of protocol.py; call it once, after the start of the child."""
        os.close(self._write)
        with open(self._read, "rb") as pipe:
            report: dict[str, Any] = json.loads(pipe.read() or b'{"refused": {}}')
        self._refused.update(report["refused"])
        refused = dict(self._refused)
        if self._limits.cpus is not None:
            self._check_applied_cpus(report.get("cpus"), refused)
        group = self._group
        return {
            "mechanism": group.mechanism if group else "affinity",
            "cpus": report.get("cpus"),
            "cpu_quota": group.quota() if group and "cpu_quota" not in refused else None,
            "memory_bytes": group.memory() if group and "memory_bytes" not in refused else None,
            "open_files": report.get("open_files"),
            "file_bytes": report.get("file_bytes"),
            "processes": (group.processes() if group else None) or report.get("processes"),
            "refused": refused,
        }

    def _check_applied_cpus(self, cpus: Optional[list[int]], refused: dict[str, str]) -> None:
        """An affinity is as good as a CPU set, so it is no refusal."""
        if cpus is None:
            refused["cpus"] = "this system cannot limit a process to CPUs"
        elif cpus == sorted(set(self._limits.cpus or ())):
            refused.pop("cpus", None)
        else:
            refused["cpus"] = f"the kernel gave CPUs {cpus}"

    def members(self) -> set[int]:
        """Return the processes in the control group of the child, also those that left its tree."""
        return self._group.members() if self._group else set()

    def oom_kills(self) -> int:
        """Return how many processes of the group the kernel ended for lack of memory so far."""
        return (self._group.oom_kills() if self._group else None) or 0

    def read_back(self, pid: Optional[int]) -> None:
        """Compare the limits of the group with the wanted ones, after the load; only once.

        `pid`: the child if it still runs.
        """
        if self._group is None or self._changed is not None:
            return
        held = {
            "cpus": self._group.cpus,
            "cpu_quota": self._group.quota,
            "memory_bytes": self._group.memory,
        }
        self._changed = {}
        for name, read in held.items():
            wanted = getattr(self._limits, name)
            if wanted is not None and name not in self._refused:
                now = read()
                if not _is_held(name, wanted, now):
                    self._changed[name] = f"it was {wanted} before the load and {now} after it"
        if pid is not None and pid not in self._group.members() and cgroups.is_alive(pid):
            self._changed["group"] = "the process left its control group"

    def close(self, applied: dict[str, Any]) -> None:
        """Kill the processes of the group and remove it; add its counts to `applied`."""
        if self._group is None:
            return
        self.read_back(None)
        counted = {
            "throttled": self._group.throttled() if self._limits.cpu_quota is not None else None,
            "oom_kills": self._group.oom_kills(),
            "refused_forks": self._group.refused_forks(),
            "peak_memory_bytes": self._group.peak_memory(),
        }
        applied.update({name: count for name, count in counted.items() if count is not None})
        applied["changed"] = self._changed
        self._group.remove()
        self._group = None


def _is_held(name: str, wanted: Any, now: Any) -> bool:
    """Return whether a limit still applies. The kernel rounds memory down to whole pages."""
    if now is None:
        return False
    if name == "cpus":
        return bool(set(now) <= set(wanted))
    if name == "memory_bytes":
        return bool(0 <= wanted - now < resource.getpagesize())
    return bool(abs(wanted - now) < 1e-4)


def confine(limits: Limits, has_own_user: bool = False) -> Confinement:
    """Return the confinement of one child."""
    return Confinement(limits, find_hierarchy(), has_own_user)


def _describe_refusal(name: str, reason: str = "") -> str:
    reason = reason or systemd_scope.explain_missing_groups()
    return f"{reason}: an affinity is used instead" if name == "cpus" else reason


def _raise_oom_score() -> None:
    """Let the kernel end measured code and load tools before the supervisor and the SSH server."""
    path = Path("/proc/self/oom_score_adj")
    with contextlib.suppress(OSError, ValueError):
        if int(path.read_text()) < OOM_SCORE:
            path.write_text(str(OOM_SCORE))


def _set_limit(kind: int, wanted: int) -> str:
    """Set a resource limit of the calling process; "" or the reason of the failure."""
    try:
        resource.setrlimit(kind, (wanted, wanted))
    except (OSError, ValueError) as error:
        _soft_limit, hard = resource.getrlimit(kind)
        return f"the hard limit of this user is {hard} ({error})"
    return ""


def _cap_limit(kind: int, most: int) -> None:
    """Set a limit against runaway processes; a lower limit of the host stays."""
    _soft_limit, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _raise_limit(kind: int, wanted: int) -> None:
    """Raise the limit as far as the hard limit allows; root raises the hard limit, too."""
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    for pair in ((wanted, max(wanted, hard)), (hard, hard)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, pair)
            return


def describe_exit(code: int) -> str:
    """Return the exit code as text, with the limit that caused it if known."""
    if code < 0 and -code == getattr(signal, "SIGXFSZ", None):
        return f"{code}: it wrote a file of more than {FILE_BYTES >> 30} GiB, the limit of one file"
    return str(code)


def _read_own_limits() -> dict[str, Any]:
    """Return the limits of the calling process, from the kernel."""
    return {
        "cpus": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "open_files": _read_soft_limit(resource.RLIMIT_NOFILE),
        "file_bytes": _read_soft_limit(resource.RLIMIT_FSIZE),
        "processes": _read_soft_limit(resource.RLIMIT_NPROC),
    }


def _read_soft_limit(kind: int) -> Optional[int]:
    soft: int = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def read_most_open_files() -> Optional[int]:
    """Return how many open files this user may allow a process; None = any number, or unknown."""
    hard: int = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if resource else -1
    return None if resource is None or hard == resource.RLIM_INFINITY else hard


def check_available_limits() -> tuple[str, list[str], str]:
    """Return the mechanism of this host, the possible limits, and why there are no groups ("").

    Checked by creating a group. Where that needs a scope of systemd, a child enters it.
    """
    if not is_systemd_running():
        return _check_groups()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            systemd_scope.enter_scope()
            os.write(write_end, json.dumps(_check_groups()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    mechanism, names, problem = json.loads(answer)
    return mechanism, names, problem[:500]


def _check_groups() -> tuple[str, list[str], str]:
    hierarchy, problem = find_hierarchy(), ""
    try:
        if hierarchy:
            cgroups.Group(hierarchy, hierarchy.folders).remove()
    except OSError as error:
        hierarchy, problem = None, str(error)
    names = [name for name, kind in _CONTROLLER.items() if hierarchy and kind in hierarchy.folders]
    if hasattr(os, "sched_setaffinity") and "cpus" not in names:
        names.append("cpus")
    if resource:
        names.append("open_files")
    if hierarchy is None and not problem:
        problem = systemd_scope.explain_missing_groups()
    return (hierarchy.mechanism if hierarchy else "affinity"), names, problem
