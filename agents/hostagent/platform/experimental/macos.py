"""macOS (experimental): processes and facts; see platform/system.py for the interface.

Programs: ps(1), sysctl(8), sw_vers(1), pmset(1). Calls: proc_pid_rusage of <libproc.h> with
`struct rusage_info_v4` of <sys/resource.h>, and mach_timebase_info of <mach/mach_time.h>.
Temperatures and clocks are readable by root only (powermetrics), so they are unknown here.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import time
from collections.abc import Collection, Iterable
from typing import Any, Optional

from ..counters import FACTS, Consumer, Counters, CurrentState, Throttling
from ..process_table import Process
from ..topology import Core, Topology
from ..usage import Usage

UNKNOWN = dict.fromkeys(
    ("voluntary_switches", "involuntary_switches"), "macOS does not distinguish them"
)
_RUSAGE_INFO_V4 = 4
_RUSAGE = """
    user_time system_time pkg_idle_wkups interrupt_wkups pageins wired_size resident_size
    phys_footprint proc_start_abstime proc_exit_abstime
    child_user_time child_system_time child_pkg_idle_wkups child_interrupt_wkups child_pageins
    child_elapsed_abstime
    diskio_bytesread diskio_byteswritten
    cpu_time_qos_default cpu_time_qos_maintenance cpu_time_qos_background cpu_time_qos_utility
    cpu_time_qos_legacy cpu_time_qos_user_initiated cpu_time_qos_user_interactive
    billed_system_time serviced_system_time
    logical_writes lifetime_max_phys_footprint instructions cycles billed_energy serviced_energy
    interval_max_phys_footprint runnable_time
"""
KEYS = {
    "cpu_model": "machdep.cpu.brand_string",
    "cores": "hw.physicalcpu",
    "microcode": "machdep.cpu.microcode_version",
    "memory_bytes": "hw.memsize",
    "clock_base_hz": "hw.cpufrequency",
    "clock_min_hz": "hw.cpufrequency_min",
    "clock_max_hz": "hw.cpufrequency_max",
    "swap": "vm.swapusage",
    "boot_time": "kern.boottime",
    "boot_id": "kern.bootsessionuuid",
    "in_vm": "kern.hv_vmm_present",
}
#: The keys of a performance level; 0 is the fastest, and Intel machines have none.
_LEVEL_KEYS = ("name", "physicalcpu", "logicalcpu")
_MOST_LEVELS = 4
_NO_PINNING = "macOS cannot pin processes to CPUs"


class RusageInfo(ctypes.Structure):
    """struct rusage_info_v4; times are in units of mach_timebase_info."""

    _fields_ = [
        ("uuid", ctypes.c_uint8 * 16),
        *[(name, ctypes.c_uint64) for name in _RUSAGE.split()],
    ]


def read_process_table() -> dict[int, Process]:
    return parse_table(_run("ps", "-axo", "pid=,ppid=,pgid=,state="))


def parse_table(ps: str) -> dict[int, Process]:
    """Return the processes in the output of `ps -axo pid=,ppid=,pgid=,state=`, without sessions."""
    entries = {}
    for line in ps.splitlines():
        pid, parent, group, state = line.split()[:4]
        entries[int(pid)] = Process(int(pid), int(parent), int(group), None, state.startswith("Z"))
    return entries


def find_marked(_variable: str) -> set[int]:
    """Return nothing: macOS does not show environments."""
    return set()


def read_usages(pids: Iterable[int]) -> dict[int, Usage]:
    system = ctypes.CDLL(None)
    tick_s = _read_tick_s(system)
    infos = {pid: _read_rusage(system, pid) for pid in pids}
    return {pid: convert_usage(info, tick_s) for pid, info in infos.items() if info}


def _read_rusage(system: Any, pid: int) -> Optional[RusageInfo]:
    """Return None for a process that has ended or is not ours."""
    info = RusageInfo()
    return info if system.proc_pid_rusage(pid, _RUSAGE_INFO_V4, ctypes.byref(info)) == 0 else None


def convert_usage(info: RusageInfo, tick_s: float) -> Usage:
    """Return the usage; the peak memory is that of the footprint, which excludes shared memory."""
    ticks = info.user_time + info.system_time + info.child_user_time + info.child_system_time
    return Usage(
        cpu_s=ticks * tick_s,
        rss_bytes=info.resident_size,
        peak_rss_bytes=info.lifetime_max_phys_footprint,
        read_bytes=info.diskio_bytesread,
        written_bytes=info.diskio_byteswritten,
    )


def _read_tick_s(system: Any) -> float:
    fraction = (ctypes.c_uint32 * 2)()
    system.mach_timebase_info(ctypes.byref(fraction))
    numerator, denominator = fraction
    return numerator / denominator / 1e9


def read_stolen_s() -> Optional[float]:
    return None


def read_temperatures() -> dict[str, float]:
    return {}


def read_temperature_c() -> Optional[float]:
    return None


def read_clock_mhz(_cpus: Optional[Collection[int]] = None) -> Optional[float]:
    return None


def read_throttling(_cpus: Optional[Collection[int]] = None) -> Throttling:
    return Throttling()


def read_held_clock_mhz() -> Optional[float]:
    return None


def read_counters(_cpus: Optional[Collection[int]] = None) -> Counters:
    return Counters()


def read_current_state() -> CurrentState:
    source = parse_power(_run("pmset", "-g", "batt"))["power_source"]
    return CurrentState(
        on_battery=None if source is None else source == "battery",
        boot_id=_parse_pairs(_run("sysctl", KEYS["boot_id"])).get(KEYS["boot_id"]),
    )


def read_consumers() -> Optional[dict[int, Consumer]]:
    return None


def read_newest_pid() -> Optional[int]:
    return None


def count_established(_port: int) -> Optional[int]:
    return None


def count_local_ports() -> Optional[int]:
    return None


def are_ports_exhausted() -> Optional[bool]:
    return None


def explain_unknown() -> dict[str, str]:
    return dict.fromkeys(FACTS, "the agent does not read this on macOS")


def read_facts() -> dict[str, Any]:
    return parse_facts(
        sysctl=_run("sysctl", *KEYS.values()),
        sw_vers=_run("sw_vers"),
        batteries=_run("pmset", "-g", "batt"),
        settings=_run("pmset", "-g"),
        now=time.time(),
    )


def parse_facts(
    *, sysctl: str, sw_vers: str, batteries: str, settings: str, now: float
) -> dict[str, Any]:
    """Return the facts in the output of the programs; Apple silicon has no clocks and microcode."""
    values, versions = _parse_pairs(sysctl), _parse_pairs(sw_vers)
    booted = re.search(r"sec = (\d+)", values.get(KEYS["boot_time"], ""))
    in_vm = values.get(KEYS["in_vm"])
    return {
        "cpu_model": values.get(KEYS["cpu_model"]),
        "cores": _parse_whole(values.get(KEYS["cores"])),
        "microcode": values.get(KEYS["microcode"]),
        "memory_bytes": _parse_whole(values.get(KEYS["memory_bytes"])),
        "swap_bytes": _parse_swap_bytes(values.get(KEYS["swap"], "")),
        "clock_base_mhz": _parse_mhz(values.get(KEYS["clock_base_hz"])),
        "clock_min_mhz": _parse_mhz(values.get(KEYS["clock_min_hz"])),
        "clock_max_mhz": _parse_mhz(values.get(KEYS["clock_max_hz"])),
        "os_name": versions.get("ProductName"),
        "os_version": versions.get("ProductVersion"),
        "governor": _parse_governor(settings),
        "virtualisation": {"0": "none", "1": "virtual machine"}.get(in_vm or ""),
        **parse_power(batteries),
        "uptime_s": now - int(booted.group(1)) if booted else None,
        "boot_id": values.get(KEYS["boot_id"]),
    }


def read_topology() -> Optional[Topology]:
    levels = [f"hw.perflevel{n}.{key}" for n in range(_MOST_LEVELS) for key in _LEVEL_KEYS]
    return parse_topology(_run("sysctl", "hw.physicalcpu", "hw.logicalcpu", *levels))


def parse_topology(sysctl: str) -> Optional[Topology]:
    """Return the cores in the output of sysctl(8), in the order of their performance levels.

    macOS does not report the number of a core, so the CPUs are numbered in this order.
    """
    values = _parse_pairs(sysctl)
    levels = [
        (values.get(f"hw.perflevel{n}.name", "").lower(), f"hw.perflevel{n}.")
        for n in range(_MOST_LEVELS)
        if f"hw.perflevel{n}.physicalcpu" in values
    ] or [("", "hw.")]
    cores: list[Core] = []
    for kind, prefix in levels:
        physical = _parse_whole(values.get(f"{prefix}physicalcpu")) or 0
        threads = (_parse_whole(values.get(f"{prefix}logicalcpu")) or 0) // max(1, physical)
        for _ in range(physical):
            first = sum(len(core.cpus) for core in cores)
            cores.append(Core(tuple(range(first, first + threads)), kind=kind))
    if not cores:
        return None
    kinds = tuple(kind for kind, _prefix in levels if kind)
    return Topology(tuple(cores), kinds, no_pinning=_NO_PINNING)


def parse_power(batteries: str) -> dict[str, Any]:
    """Return the power source from `pmset -g batt`."""
    drawing = re.search(r"Now drawing from '(\w+) Power'", batteries)
    level = re.search(r"InternalBattery.*?(\d+)%", batteries)
    sources = {"AC": "mains", "Battery": "battery", "UPS": "battery"}
    return {
        "power_source": sources.get(drawing.group(1)) if drawing else None,
        "battery_percent": int(level.group(1)) if level else None,
    }


def _parse_governor(settings: str) -> Optional[str]:
    """Return the mode that lowers the clocks, from `pmset -g`."""
    match = re.search(r"^\s*lowpowermode\s+(\d)", settings, re.MULTILINE)
    return {"0": "normal", "1": "low power"}.get(match.group(1)) if match else None


def _parse_swap_bytes(text: str) -> Optional[int]:
    match = re.search(r"total = ([\d.]+)M", text)
    return round(float(match.group(1)) * (1 << 20)) if match else None


def _run(*argv: str) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _parse_pairs(text: str) -> dict[str, str]:
    parts = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in parts if colon}


def _parse_whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isdigit() else None


def _parse_mhz(text: Optional[str]) -> Optional[float]:
    hertz = _parse_whole(text)
    return hertz / 1e6 if hertz else None
