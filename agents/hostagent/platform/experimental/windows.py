"""Windows (experimental): processes and facts; see platform/system.py for the interface."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable
from typing import Any, Optional

from .. import hypervisors
from ..counters import FACTS, Consumer, Counters, CurrentState, Throttling
from ..process_table import Process
from ..topology import Topology, build_unknown_topology
from ..usage import Usage
from . import windows_api as api
from .windows_types import PowerStatus

winreg: Any
try:
    import winreg
except ImportError:  # not Windows
    winreg = None

UNKNOWN = dict.fromkeys(
    ("voluntary_switches", "involuntary_switches"), "Windows does not distinguish them"
)
_CPU_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
_BIOS_KEY = r"HARDWARE\DESCRIPTION\System\BIOS"
_SCHEMES = {
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
}


def read_process_table() -> dict[int, Process]:
    """Return the process table; Windows has no process groups, sessions or zombies as POSIX has."""
    return {
        pid: Process(pid, parent, 0, None, False) for pid, parent in api.list_processes().items()
    }


def read_usages(pids: Iterable[int]) -> dict[int, Usage]:
    read = {pid: api.process_counters(pid) for pid in pids}
    return {
        pid: Usage(
            cpu_s=counters[0],
            rss_bytes=counters[1].WorkingSetSize,
            peak_rss_bytes=counters[1].PeakWorkingSetSize,
        )
        for pid, counters in read.items()
        if counters
    }


def find_marked(_variable: str) -> set[int]:
    return set()


def read_stolen_s() -> Optional[float]:
    return None


def read_temperatures() -> dict[str, float]:
    return {}


def read_temperature_c() -> Optional[float]:
    return None


def read_clock_mhz(_cpus: Optional[Collection[int]] = None) -> Optional[float]:
    return max((cpu.CurrentMhz for cpu in api.read_clocks()), default=None)


def read_throttling(_cpus: Optional[Collection[int]] = None) -> Throttling:
    return Throttling()


def read_held_clock_mhz() -> Optional[float]:
    return None


def read_counters(_cpus: Optional[Collection[int]] = None) -> Counters:
    return Counters()


def read_current_state() -> CurrentState:
    source = parse_power(api.read_power_status())["power_source"]
    return CurrentState(on_battery=None if source is None else source == "battery")


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


def read_topology() -> Topology:
    return build_unknown_topology(range(os.cpu_count() or 1))


def explain_unknown() -> dict[str, str]:
    return dict.fromkeys(FACTS, "the agent does not read this on Windows")


def read_facts() -> dict[str, Any]:
    cpu, bios = _read_registry(_CPU_KEY), _read_registry(_BIOS_KEY)
    clocks = api.read_clocks()
    memory = api.read_memory()
    return {
        "cpu_model": _parse_text(cpu.get("ProcessorNameString")),
        "cores": api.count_cores() or None,
        "microcode": parse_microcode(cpu.get("Update Revision")),
        "clock_base_mhz": cpu.get("~MHz"),
        "clock_max_mhz": max((clock.MaxMhz for clock in clocks), default=None),
        "memory_bytes": memory.ullTotalPhys or None,
        "swap_bytes": max(0, memory.ullTotalPageFile - memory.ullTotalPhys),
        "os_name": "Windows",
        "os_version": platform.version() or None,
        "governor": _SCHEMES.get(api.read_power_scheme(), api.read_power_scheme() or None),
        "virtualisation": hypervisors.detect_hypervisor(
            f"{bios.get('SystemManufacturer', '')} {bios.get('SystemProductName', '')}"
        ),
        **parse_power(api.read_power_status()),
        "uptime_s": api.read_uptime_s(),
    }


def _read_registry(path: str) -> dict[str, Any]:
    """Return the values of a key below HKEY_LOCAL_MACHINE; none if the key does not exist."""
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            count = winreg.QueryInfoKey(key)[1]
            return {
                name: value for name, value, _ in (winreg.EnumValue(key, n) for n in range(count))
            }
    except OSError:
        return {}


def _parse_text(value: Any) -> Optional[str]:
    return value.strip() if isinstance(value, str) else None


def parse_microcode(revision: Any) -> Optional[str]:
    """Parse the registry value "Update Revision": eight bytes, the upper half is the number."""
    if not isinstance(revision, bytes) or len(revision) != 8:
        return None
    return hex(int.from_bytes(revision[4:], "little") or int.from_bytes(revision[:4], "little"))


def parse_power(status: PowerStatus) -> dict[str, Any]:
    """Parse SYSTEM_POWER_STATUS, where 255 is unknown and flag 128 is no battery."""
    return {
        "power_source": {0: "battery", 1: "mains"}.get(status.ACLineStatus),
        "battery_percent": (
            None
            if status.BatteryLifePercent == 255 or status.BatteryFlag & 128
            else status.BatteryLifePercent
        ),
    }
