"""Limits of one child process, and what of them the kernel really holds it to.

CPU set, CPU quota and memory go through control groups (linux/cgroups.py). Where there are
none, the CPU set becomes an affinity, memory an address space, and a quota cannot be had. Open
files are a resource limit everywhere. What does not hold is named in `refused` with its reason.

Beside what a definition asks for there are limits that stop what runs away and nothing else.
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
from .linux.cgroup_hierarchies import Place, find

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: One file, such as a log without end. As much as a commit may unpack to (builds/archive.py).
FILE_BYTES = 8 << 30
#: Processes and threads: enough for a thread for each of 10,000 connections, and half of what a
#: kernel with its usual pid_max of 32,768 has. Of a control group, or of all of a user of its own.
PROCESSES = 16_384
#: What a program finds that asks for nothing: a login's 1,024 would not do for 10,000 connections.
OPEN_FILES = 65_536

_CONTROLLER = {"cpus": "cpuset", "cpu_quota": "cpu", "memory_bytes": "memory"}


NONE = Limits()


class Confinement:
    """Limits on their way to one child: made before it, entered by it, read back, removed."""

    def __init__(
        self, limits: Limits, place: Optional[Place] = None, has_own_user: bool = False
    ) -> None:
        """`place`: where control groups can be made, None = nowhere.

        `has_own_user`: nobody else's processes count where those of its user are counted.
        """
        self._limits = limits
        self._has_own_user = has_own_user
        self._refused: dict[str, str] = {}
        self._group = self._make_group(place)
        self._read, self._write = os.pipe()

    def _make_group(self, place: Optional[Place]) -> Optional[cgroups.Group]:
        """The group with its limits set; None where none is needed or none can be made."""
        wanted = [name for name in _CONTROLLER if getattr(self._limits, name) is not None]
        held = [name for name in wanted if place and _CONTROLLER[name] in place.folders]
        self._refused.update({name: _without(name) for name in wanted if name not in held})
        if not held or place is None:
            return None
        try:
            more = [name for name in ("pids",) if name in place.folders]
            group = cgroups.Group(place, [_CONTROLLER[name] for name in held] + more)
            if more:
                group.set_processes(PROCESSES)
        except OSError as error:
            self._refused.update({name: _without(name, str(error)) for name in held})
            return None
        for name in held:
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
            self._refused[name] = _without(name, str(error))

    def enter(self) -> None:
        """In the child, before its program: take the limits on, and tell what came of it.

        Raises OSError where it may run on none of its CPUs.
        """
        entered = self._group.enter() if self._group else {}
        refused = {
            name: _without(name, entered[controller])
            for name, controller in _CONTROLLER.items()
            if controller in entered
        }
        if self._limits.cpus is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self._limits.cpus)
        refused.update(self._lower_resources({**self._refused, **refused}))
        os.write(self._write, json.dumps({"refused": refused, **_own()}).encode())

    def _lower_resources(self, refused: dict[str, str]) -> dict[str, str]:
        limits, found = self._limits, {}
        if limits.open_files is not None:
            found["open_files"] = _lower(resource.RLIMIT_NOFILE, limits.open_files)
        else:
            _at_least(resource.RLIMIT_NOFILE, OPEN_FILES)
        _bound(resource.RLIMIT_FSIZE, FILE_BYTES)
        if self._has_own_user:
            _bound(resource.RLIMIT_NPROC, PROCESSES)
        if limits.memory_bytes is not None and "memory_bytes" in refused:
            why = _lower(resource.RLIMIT_AS, limits.memory_bytes)
            found["memory_bytes"] = f"{refused['memory_bytes']}; {why}" if why else ""
        return {name: why for name, why in found.items() if why}

    def abandon(self) -> None:
        """No child came of it."""
        os.close(self._write)
        os.close(self._read)
        self.close({})

    def applied(self) -> dict[str, Any]:
        """APPLIED of protocol.py; call it once, when the child has begun."""
        os.close(self._write)
        with open(self._read, "rb") as pipe:
            told: dict[str, Any] = json.loads(pipe.read() or b'{"refused": {}}')
        refused = {**self._refused, **told["refused"]}
        if self._limits.cpus is not None:
            self._judge_cpus(told.get("cpus"), refused)
        group = self._group
        return {
            "mechanism": group.mechanism if group else "affinity",
            "cpus": told.get("cpus"),
            "cpu_quota": group.quota() if group and "cpu_quota" not in refused else None,
            "memory_bytes": (
                group.memory()
                if group and "memory_bytes" not in refused
                else told.get("address_space")
            ),
            "open_files": told.get("open_files"),
            "file_bytes": told.get("file_bytes"),
            "processes": (group.processes() if group else None) or told.get("processes"),
            "refused": refused,
        }

    def _judge_cpus(self, cpus: Optional[list[int]], refused: dict[str, str]) -> None:
        """An affinity holds as well as a CPU set does, so it is no refusal."""
        if cpus is None:
            refused["cpus"] = "this system binds no process to CPUs"
        elif cpus == sorted(set(self._limits.cpus or ())):
            refused.pop("cpus", None)
        else:
            refused["cpus"] = f"the kernel gave CPUs {cpus}"

    def members(self) -> set[int]:
        """Processes in the child's control group, wherever in the tree they went."""
        return self._group.members() if self._group else set()

    def close(self, applied: dict[str, Any]) -> None:
        """Kill what is left in the group and remove it; `applied` learns what the limits did."""
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
    """AgentError where the host has none of the CPUs that are asked for."""
    if limits.cpus is not None and hasattr(os, "sched_getaffinity"):
        _check_cpus(limits.cpus)
    needs_group = limits != NONE and limits != Limits(open_files=limits.open_files)
    return Confinement(limits, find() if needs_group else None, has_own_user)


def _check_cpus(cpus: tuple[int, ...]) -> None:
    count = os.cpu_count() or 1
    if not any(0 <= cpu < count for cpu in cpus):
        raise AgentError(f"cannot run on CPUs {list(cpus)}, this host has {count} from 0 on")


def _without(name: str, why: str = "no control group can be made here") -> str:
    instead = {
        "cpus": "an affinity is used instead",
        "cpu_quota": "there is no other way to hold a quota",
        "memory_bytes": "a limit of the address space (RLIMIT_AS) is used instead, which is close",
    }
    return f"{why}: {instead[name]}"


def _lower(kind: int, wanted: int) -> str:
    """Set a resource limit of ours; "" or why it does not hold."""
    try:
        resource.setrlimit(kind, (wanted, wanted))
    except (OSError, ValueError) as error:
        _soft, hard = resource.getrlimit(kind)
        return f"the hard limit of this user is {hard} ({error})"
    return ""


def _bound(kind: int, most: int) -> None:
    """A limit that stops what runs away; a lower one of the host stays."""
    _soft, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _at_least(kind: int, wanted: int) -> None:
    """As much as the hard limit allows; root's goes up with it."""
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    for pair in ((wanted, max(wanted, hard)), (hard, hard)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, pair)
            return


def ended_with(code: int) -> str:
    """What to say of a program's exit code, where a limit that it ran into can be known."""
    if code < 0 and -code == getattr(signal, "SIGXFSZ", None):
        return f"{code}: it wrote a file of more than {FILE_BYTES >> 30} GiB, the limit of one file"
    return str(code)


def _own() -> dict[str, Any]:
    """What the kernel says of the calling process."""
    return {
        "cpus": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "open_files": _soft(resource.RLIMIT_NOFILE),
        "address_space": _soft(resource.RLIMIT_AS),
        "file_bytes": _soft(resource.RLIMIT_FSIZE),
        "processes": _soft(resource.RLIMIT_NPROC),
    }


def _soft(kind: int) -> Optional[int]:
    soft: int = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def available() -> tuple[str, list[str]]:
    """The mechanism of this host, proven by making a group, and the limits that would hold."""
    place = find()
    try:
        if place:
            cgroups.Group(place, place.folders).remove()
    except OSError:
        place = None
    has = [name for name, kind in _CONTROLLER.items() if place and kind in place.folders]
    if hasattr(os, "sched_setaffinity") and "cpus" not in has:
        has.append("cpus")
    if resource:
        has.append("open_files")
    return (place.mechanism if place else "affinity"), has
