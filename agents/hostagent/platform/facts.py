"""The facts of this host. A fact that cannot be read is null, with a reason in `reasons`."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from . import limits, programs, system
from .linux import tuning

#: Facts that do not change on an unchanged machine; the fingerprint is computed from them.
STATIC = (
    "cpu_model",
    "cores",
    "threads",
    "memory_bytes",
    "kernel",
    "microcode",
    "governor",
    "turbo",
    "smt",
    "mitigations",
    "machine",
    "virtualisation",
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
    "governor": "no CPU frequency governor (usual in virtual machines)",
    "turbo": "no driver can switch turbo (usual in virtual machines)",
    "smt": "the system has no switch for SMT",
    "mitigations": "the system does not list the CPU's vulnerabilities",
    "virtualisation": "it is unknown whether there is a hypervisor",
    "container": "not known on this system",
    "power_source": "the system lists no power supply",
    "battery_percent": "the system lists no battery",
    "clock_source": "not known on this system",
    "uptime_s": "the system does not report when it was started",
    "boot_id": "the system does not number its boots",
    "temperatures": "no sensor can be read by this user",
}


def gather_facts(root: Optional[Path] = None, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """Return all facts as one object for JSON; never fails for a fact that cannot be read.

    `root`: the work directory, for its disk and for the cache of program versions. `wanted`: names
    of more programs to search.
    """
    read = system.read_facts()
    mechanism, available = limits.check_available_limits()
    facts: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "hostname": platform.node() or None,
        "python": platform.python_version(),
        "python_path": sys.executable,
        "kernel": platform.release() or None,
        "threads": os.cpu_count(),
        "load": _load(),
        "time": time.time(),
        **_read_disk(root),
        **{name: read.get(name) for name in UNKNOWN_REASONS},
        "limits_mechanism": mechanism,
        "limits_available": available,
        "tuning_available": tuning.list_available_knobs(),
        **programs.inspect_programs(root, wanted),
    }
    facts["os_name"] = facts["os_name"] or facts["system"]
    unknown = [name for name, value in facts.items() if value is None]
    reasons = {name: UNKNOWN_REASONS.get(name, "the system does not report it") for name in unknown}
    static = select_static_facts(facts)
    return {
        **facts,
        "reasons": reasons,
        "static": static,
        "fingerprint": compute_fingerprint(static),
    }


def select_static_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the fingerprint. Memory is rounded: it differs a little between boots."""
    static = {name: facts.get(name) for name in STATIC}
    memory = static["memory_bytes"]
    return {**static, "memory_bytes": int(float(f"{memory:.3g}")) if memory else None}


def compute_fingerprint(static: Mapping[str, Any]) -> str:
    """Return SHA-256 of the static facts: it differs for another or a changed machine."""
    text = json.dumps({name: static.get(name) for name in STATIC}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_disk(root: Optional[Path]) -> dict[str, Optional[int]]:
    try:
        disk = shutil.disk_usage(root or Path.cwd())
    except OSError:
        return {"disk_free_bytes": None, "disk_total_bytes": None}
    return {"disk_free_bytes": disk.free, "disk_total_bytes": disk.total}


def _load() -> Optional[list[float]]:
    try:
        return list(os.getloadavg())
    except (AttributeError, OSError):
        return None
