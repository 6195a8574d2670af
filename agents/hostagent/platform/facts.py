"""The facts of this host. A fact that cannot be read is null, with a reason in `reasons`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from ..network.capability import check_capability
from . import limits, machine, programs, system
from .linux import knobs, tuning_record
from .topology import Topology, format_cpus

#: Facts that do not change on an unchanged machine, and that change measurements. With the versions
#: of RUNTIMES they identify the machine.
STATIC = (
    "cpu_model",
    "cores",
    "threads",
    "usable_cpus",
    "memory_bytes",
    "machine",
    "virtualisation",
    "container",
    "firmware",
    "microcode",
    "kernel",
    "kernel_parameters",
    "mitigations",
    "clock_source",
    "scaling_driver",
    "governor",
    "energy_preference",
    "platform_profile",
    "turbo",
    "smt",
    "transparent_hugepages",
    "numa_balancing",
    "aslr",
    "swappiness",
    "libc",
)
#: Programs that run, serve or compile measured code. Those that only start builds change no result.
RUNTIMES = (
    *(name for name in programs.LANGUAGES if name != "cargo"),
    *programs.PYTHONS,
    *programs.SERVERS,
    *("bun", "caddy", "gcc", "ghc", "haproxy", "pypy3", "traefik"),
)
#: The facts of the system's module, and the reason if one is unknown.
UNKNOWN_REASONS = {
    "cpu_model": "the system does not name the CPU",
    "cores": "the system does not number the cores",
    "microcode": "the CPU's microcode is not shown to this user",
    "clock_base_mhz": "no driver reports the base clock",
    "clock_min_mhz": "no driver reports the lowest clock",
    "clock_max_mhz": "no driver reports the highest clock",
    "memory_bytes": "the system does not report its memory",
    "swap_bytes": "the system does not report its swap",
    "os_name": "the system has no name",
    "os_version": "the system names no version",
    "scaling_driver": "no driver changes the clocks (usual in virtual machines)",
    "governor": "no CPU frequency governor (usual in virtual machines)",
    "energy_preference": "the driver of the clocks has no energy preference",
    "platform_profile": "the firmware has no profiles",
    "turbo": "no driver can switch turbo (usual in virtual machines)",
    "smt": "the system has no switch for SMT",
    "transparent_hugepages": "the kernel has no transparent huge pages",
    "numa_balancing": "the kernel does not balance NUMA nodes",
    "aslr": "the system does not report it",
    "swappiness": "the system does not report it",
    "kernel_parameters": "the kernel does not show its command line",
    "firmware": "the firmware shows no version",
    "mitigations": "the system does not list the CPU's vulnerabilities",
    "virtualisation": "it is unknown whether there is a hypervisor",
    "container": "not known on this system",
    "power_source": "the system lists no power supply",
    "battery_percent": "the system lists no battery",
    "clock_source": "not known on this system",
    "uptime_s": "the system does not report when it was started",
    "boot_id": "the system does not number its boots",
    "machine_id": "the system gave the machine no id",
    "temperatures": "no sensor can be read by this user",
}


def gather_facts(root: Optional[Path] = None, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """Return all facts as one object for JSON; never fails for a fact that cannot be read.

    `root`: the work directory, for its disk and for the cache of program versions. `wanted`: names
    of more programs to search.
    """
    read = system.read_facts()
    mechanism, available, problem = limits.check_available_limits()
    emulated, network_problem = check_capability()
    facts: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "hostname": platform.node() or None,
        "python": platform.python_version(),
        "python_path": sys.executable,
        "kernel": platform.release() or None,
        "libc": _read_libc(),
        "threads": os.cpu_count(),
        **_describe_topology(system.read_topology()),
        "load": _load(),
        "time": time.time(),
        **_read_disk(root),
        **{name: read.get(name) for name in UNKNOWN_REASONS},
        "machine_id": machine.read_machine_id(),
        "installation_id": machine.ensure_installation_id(root) if root else None,
        "limits_mechanism": mechanism,
        "limits_available": available,
        **({"limits_problem": problem} if problem else {}),
        "limits_open_files": limits.read_most_open_files(),
        "local_ports": system.count_local_ports(),
        "work_dir_noexec": _is_noexec(root),
        "network_available": emulated,
        **({"network_problem": network_problem} if network_problem else {}),
        "tuning_available": knobs.list_available_knobs(),
        "tuning_left": tuning_record.find_unrestored(root) if root else {},
        **programs.inspect_programs(root, wanted),
    }
    facts["os_name"] = facts["os_name"] or facts["system"]
    unknown = [name for name, value in facts.items() if value is None]
    reasons = {name: UNKNOWN_REASONS.get(name, "the system does not report it") for name in unknown}
    return {**facts, "reasons": reasons, "static": select_static_facts(facts)}


def select_static_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that identify the machine.

    Memory is rounded: it differs a little between boots.
    """
    static = {name: facts.get(name) for name in STATIC}
    memory = static["memory_bytes"]
    rounded = int(float(f"{memory:.3g}")) if memory else None
    return {**static, "memory_bytes": rounded, **_list_runtime_versions(facts)}


def _list_runtime_versions(facts: Mapping[str, Any]) -> dict[str, Optional[str]]:
    """Return `<program>_version` of each runtime; None if it is missing or reports no version."""
    groups = [facts.get(group) or {} for group in ("languages", "programs", "tools")]
    found = {name: program for group in groups for name, program in group.items() if program}
    return {f"{name}_version": found.get(name, {}).get("version") for name in RUNTIMES}


def _read_libc() -> Optional[str]:
    """Return the C library of the system, such as "glibc 2.36"; None if it names none."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        return None


def _read_disk(root: Optional[Path]) -> dict[str, Optional[int]]:
    try:
        disk = shutil.disk_usage(root or Path.cwd())
    except OSError:
        return {"disk_free_bytes": None, "disk_total_bytes": None}
    return {"disk_free_bytes": disk.free, "disk_total_bytes": disk.total}


def _is_noexec(root: Optional[Path]) -> Optional[bool]:
    """Return whether no program of the work directory can be started; None if unknown."""
    try:
        flags = os.statvfs(root or Path.cwd()).f_flag
    except (AttributeError, OSError):
        return None
    return bool(flags & os.ST_NOEXEC) if hasattr(os, "ST_NOEXEC") else None


def _describe_topology(topology: Optional[Topology]) -> dict[str, Any]:
    if topology is None:
        return {"topology": None, "usable_cpus": None}
    return {"topology": topology.as_json(), "usable_cpus": format_cpus(topology.cpus)}


def _load() -> Optional[list[float]]:
    try:
        return list(os.getloadavg())
    except (AttributeError, OSError):
        return None
