"""The limits of one child process, and which of them the kernel enforces.

CPU set, CPU quota and memory are limited by control groups (linux/cgroups.py). Without them the
CPU set becomes an affinity, memory a limit of the address space, and there is no quota. Open files
are a resource limit on all systems. A limit that is not enforced is in `refused` with its reason.

In addition to the limits of a definition there are high limits against runaway processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from typing import Any, Optional

from ..errors import AgentError
from ..step.plan import Limits
from .linux import cgroups
from .linux.cgroup_hierarchies import CgroupHierarchy, find_hierarchy

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

_CONTROLLER = {"cpus": "cpuset", "cpu_quota": "cpu", "memory_bytes": "memory"}


NONE = Limits()


class Confinement:
    """The limits of one child: created before it, entered by it, read back, removed."""

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
        self._read, self._write = os.pipe()

    def _make_group(self, hierarchy: Optional[CgroupHierarchy]) -> Optional[cgroups.Group]:
        """Return the group with its limits; None if none is needed or none can be created."""
        wanted = [name for name in _CONTROLLER if getattr(self._limits, name) is not None]
        supported = [
            name for name in wanted if hierarchy and _CONTROLLER[name] in hierarchy.folders
        ]
        self._refused.update(
            {name: _describe_refusal(name) for name in wanted if name not in supported}
        )
        if not supported or hierarchy is None:
            return None
        try:
            more = [name for name in ("pids",) if name in hierarchy.folders]
            group = cgroups.Group(hierarchy, [_CONTROLLER[name] for name in supported] + more)
            if more:
                group.set_processes(PROCESSES)
        except OSError as error:
            self._refused.update({name: _describe_refusal(name, str(error)) for name in supported})
            return None
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
            if controller in entered
        }
        if self._limits.cpus is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self._limits.cpus)
        refused.update(self._lower_resources({**self._refused, **refused}))
        os.write(self._write, json.dumps({"refused": refused, **_read_own_limits()}).encode())

    def _lower_resources(self, refused: dict[str, str]) -> dict[str, str]:
        limits, refusals = self._limits, {}
        if limits.open_files is not None:
            refusals["open_files"] = _set_limit(resource.RLIMIT_NOFILE, limits.open_files)
        else:
            _raise_limit(resource.RLIMIT_NOFILE, OPEN_FILES)
        _cap_limit(resource.RLIMIT_FSIZE, FILE_BYTES)
        if self._has_own_user:
            _cap_limit(resource.RLIMIT_NPROC, PROCESSES)
        if limits.memory_bytes is not None and "memory_bytes" in refused:
            reason = _set_limit(resource.RLIMIT_AS, limits.memory_bytes)
            refusals["memory_bytes"] = f"{refused['memory_bytes']}; {reason}" if reason else ""
        return {name: reason for name, reason in refusals.items() if reason}

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
        refused = {**self._refused, **report["refused"]}
        if self._limits.cpus is not None:
            self._check_applied_cpus(report.get("cpus"), refused)
        group = self._group
        return {
            "mechanism": group.mechanism if group else "affinity",
            "cpus": report.get("cpus"),
            "cpu_quota": group.quota() if group and "cpu_quota" not in refused else None,
            "memory_bytes": (
                group.memory()
                if group and "memory_bytes" not in refused
                else report.get("address_space")
            ),
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

    def close(self, applied: dict[str, Any]) -> None:
        """Kill the processes of the group and remove it; add its counts to `applied`."""
        if self._group is None:
            return
        counted = {
            "throttled": self._group.throttled(),
            "oom_kills": self._group.oom_kills(),
            "refused_forks": self._group.refused_forks(),
        }
        applied.update({name: count for name, count in counted.items() if count is not None})
        self._group.remove()
        self._group = None


def confine(limits: Limits, has_own_user: bool = False) -> Confinement:
    """Return the confinement of one child; AgentError if the host has none of the CPUs."""
    if limits.cpus is not None and hasattr(os, "sched_getaffinity"):
        _check_cpus(limits.cpus)
    needs_group = limits != NONE and limits != Limits(open_files=limits.open_files)
    return Confinement(limits, find_hierarchy() if needs_group else None, has_own_user)


def _check_cpus(cpus: tuple[int, ...]) -> None:
    count = os.cpu_count() or 1
    if not any(0 <= cpu < count for cpu in cpus):
        raise AgentError(f"cannot run on CPUs {list(cpus)}, this host has {count} from 0 on")


def _describe_refusal(name: str, reason: str = "no control group can be created here") -> str:
    fallbacks = {
        "cpus": "an affinity is used instead",
        "cpu_quota": "there is no other way to enforce a quota",
        "memory_bytes": "a limit of the address space (RLIMIT_AS) is used instead",
    }
    return f"{reason}: {fallbacks[name]}"


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
        "address_space": _read_soft_limit(resource.RLIMIT_AS),
        "file_bytes": _read_soft_limit(resource.RLIMIT_FSIZE),
        "processes": _read_soft_limit(resource.RLIMIT_NPROC),
    }


def _read_soft_limit(kind: int) -> Optional[int]:
    soft: int = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def check_available_limits() -> tuple[str, list[str]]:
    """Return the mechanism of this host, checked by creating a group, and the possible limits."""
    hierarchy = find_hierarchy()
    try:
        if hierarchy:
            cgroups.Group(hierarchy, hierarchy.folders).remove()
    except OSError:
        hierarchy = None
    names = [name for name, kind in _CONTROLLER.items() if hierarchy and kind in hierarchy.folders]
    if hasattr(os, "sched_setaffinity") and "cpus" not in names:
        names.append("cpus")
    if resource:
        names.append("open_files")
    return (hierarchy.mechanism if hierarchy else "affinity"), names
