"""The topology of a Linux machine, from /sys and /proc below a root that tests can set.

Documentation/admin-guide/cputopology.rst and ABI/testing/sysfs-devices-system-cpu of the kernel
describe the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from ..topology import UNKNOWN_SIBLINGS, Core, Topology
from .facts import SYSTEM, read_text

_CPU = "sys/devices/system/cpu"
#: The performance counters of a hybrid machine exist once for each type of core, fastest first.
_HYBRID = {
    "performance": "sys/devices/cpu_core/cpus",
    "efficiency": "sys/devices/cpu_atom/cpus",
    "low power": "sys/devices/cpu_lowpower/cpus",
}


def read_topology(system: Path = SYSTEM) -> Optional[Topology]:
    """Return the cores and the CPUs that this process may use; None if no CPU is listed."""
    online = _read_cpus(system / _CPU / "online")
    if not online:
        return None
    allowed = _read_allowed(system) or online
    kinds, nodes, clocks = _read_kinds(system, online), _read_nodes(system), _read_clocks(system)
    siblings = {cpu: _read_siblings(system, cpu) & online for cpu in online}
    # A file that lists other CPUs than those of the core is useless.
    known = all(cpu in siblings[cpu] for cpu in online)
    groups = {frozenset(siblings[cpu]) if known else frozenset({cpu}) for cpu in online}
    return Topology(
        cores=tuple(
            Core(
                cpus=tuple(sorted(group & allowed)),
                others=tuple(sorted(group - allowed)),
                package=_read_number(system, min(group), "physical_package_id"),
                node=nodes.get(min(group), 0),
                kind=kinds.get(min(group), ""),
                clock=clocks.get(min(group)),
            )
            for group in sorted(groups, key=min)
        ),
        kinds=tuple(dict.fromkeys(kinds.values())),
        offline=tuple(sorted(_read_cpus(system / _CPU / "offline"))),
        isolated=tuple(sorted(_read_cpus(system / _CPU / "isolated"))),
        no_siblings="" if known else UNKNOWN_SIBLINGS,
    )


def parse_cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a list of the kernel, such as "0-3,8"."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return frozenset(cpu for low, high in ranges for cpu in range(int(low), int(high or low) + 1))


def _read_cpus(path: Path) -> frozenset[int]:
    return parse_cpus(read_text(path) or "")


def _read_allowed(system: Path) -> frozenset[int]:
    """Return the CPUs of this process: within the cpuset of its container, and its affinity."""
    status = read_text(system / "proc/self/status") or ""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return parse_cpus(match.group(1)) if match else frozenset()


def _read_siblings(system: Path, cpu: int) -> frozenset[int]:
    folder = system / _CPU / f"cpu{cpu}/topology"
    # Kernels before 5.3 have the second name only.
    return _read_cpus(folder / "core_cpus_list") or _read_cpus(folder / "thread_siblings_list")


def _read_number(system: Path, cpu: int, name: str) -> int:
    """Return a number of a CPU's topology; ARM kernels write -1 for an unknown one."""
    text = read_text(system / _CPU / f"cpu{cpu}/topology" / name)
    return int(text) if text and text.isdigit() else 0


def _read_nodes(system: Path) -> dict[int, int]:
    """Return the NUMA node of each CPU; empty for a kernel without NUMA."""
    return {
        cpu: int(folder.name[len("node") :])
        for folder in system.glob("sys/devices/system/node/node[0-9]*")
        for cpu in _read_cpus(folder / "cpulist")
    }


def _read_clocks(system: Path) -> dict[int, int]:
    """Return the lowest CPU of the frequency domain of each CPU."""
    domains = [
        sorted(map(int, (read_text(policy / "related_cpus") or "").split()))
        for policy in system.glob(f"{_CPU}/cpufreq/policy[0-9]*")
    ]
    return {cpu: domain[0] for domain in domains for cpu in domain}


def _read_kinds(system: Path, online: frozenset[int]) -> Mapping[int, str]:
    """Return the type of each CPU, the fastest first; empty if all cores are of one type."""
    hybrid = {
        cpu: kind
        for kind, path in _HYBRID.items()
        for cpu in sorted(_read_cpus(system / path) & online)
    }
    return hybrid if len(set(hybrid.values())) > 1 else _read_capacities(system, online)


def _read_capacities(system: Path, online: frozenset[int]) -> Mapping[int, str]:
    """Return the types by the capacities of ARM and other kernels; the fastest CPU has 1024."""
    texts = {cpu: read_text(system / _CPU / f"cpu{cpu}/cpu_capacity") or "" for cpu in online}
    capacities = {cpu: int(text) for cpu, text in texts.items() if text.isdigit()}
    if len(set(capacities.values())) < 2:
        return {}
    order = sorted(capacities, key=lambda cpu: (-capacities[cpu], cpu))
    return {cpu: f"capacity {capacities[cpu]}" for cpu in order}
