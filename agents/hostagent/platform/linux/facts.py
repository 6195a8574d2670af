"""Facts and sensors of a Linux host, from /proc, /sys and /etc below a root that tests can set."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Optional

from .. import hypervisors
from .arm_models import parse_arm_model
from .kernel_settings import read_kernel_settings
from .sysfs import CPU, SYSTEM, read_mhz, read_number, read_text
from .throttling import list_clock_files, read_base_clock_mhz

_FREQ = f"{CPU}/cpu0/cpufreq"
_CLOCK = "sys/devices/system/clocksource/clocksource0"
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_DMI = "sys/class/dmi/id"
_CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_CPU_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal")


def read_facts(system: Path = SYSTEM) -> dict[str, Any]:
    cpuinfo = read_text(system / "proc/cpuinfo") or ""
    meminfo = read_text(system / "proc/meminfo") or ""
    release = parse_os_release(read_text(system / "etc/os-release") or "")
    return {
        "cpu_model": parse_cpu_model(cpuinfo),
        "cores": count_cores(cpuinfo) or _count_sibling_groups(system),
        "microcode": _parse_field(cpuinfo, "microcode"),
        "clock_base_mhz": read_base_clock_mhz(system),
        "clock_min_mhz": read_mhz(system / _FREQ / "cpuinfo_min_freq"),
        "clock_max_mhz": read_mhz(system / _FREQ / "cpuinfo_max_freq"),
        "memory_bytes": parse_memory_bytes(meminfo),
        "swap_bytes": parse_memory_bytes(meminfo, "SwapTotal"),
        "os_name": release.get("NAME"),
        "os_version": release.get("VERSION_ID"),
        **read_kernel_settings(system),
        "mitigations": read_mitigations(system),
        "virtualisation": detect_virtualisation(system, cpuinfo),
        "container": detect_container(system),
        **read_power(system),
        "clock_source": read_text(system / _CLOCK / "current_clocksource"),
        "uptime_s": _read_uptime_s(system),
        "boot_id": read_text(system / _BOOT_ID),
        "temperatures": read_temperatures(system) or None,
    }


def parse_cpu_model(cpuinfo: str) -> Optional[str]:
    """Return the model in /proc/cpuinfo; some ARM kernels name the board, others only numbers."""
    for key in ("model name", "Model", "Hardware"):
        model = _parse_field(cpuinfo, key)
        if model:
            return model
    return parse_arm_model(cpuinfo)


def count_cores(cpuinfo: str) -> Optional[int]:
    """Return the number of distinct (physical id, core id); None if the kernel has no numbers."""
    pairs = set()
    for block in cpuinfo.split("\n\n"):
        fields = dict(re.findall(r"^(physical id|core id)\s*:\s*(\d+)$", block, re.MULTILINE))
        if len(fields) == 2:
            pairs.add((fields["physical id"], fields["core id"]))
    return len(pairs) or None


def _count_sibling_groups(system: Path) -> Optional[int]:
    """Return the number of cores by the threads that share one; ARM has no numbers in cpuinfo."""
    files = system.glob(f"{CPU}/cpu[0-9]*/topology/thread_siblings_list")
    return len({group for group in map(read_text, files) if group}) or None


def parse_memory_bytes(meminfo: str, key: str = "MemTotal") -> Optional[int]:
    match = re.search(rf"^{key}:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def parse_os_release(text: str) -> dict[str, str]:
    return {
        key: value.strip("\"'")
        for key, value in re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)
    }


def read_mitigations(system: Path) -> Optional[str]:
    """Return `name: state; …` of the vulnerabilities that this CPU has."""
    states = {path.name: read_text(path) for path in (system / CPU / "vulnerabilities").glob("*")}
    lines = [f"{name}: {state}" for name, state in sorted(states.items()) if state]
    affected = [line for line in lines if not line.endswith(": Not affected")]
    return "; ".join(affected) or ("not affected" if lines else None)


def detect_virtualisation(system: Path, cpuinfo: str) -> Optional[str]:
    """Return the hypervisor, as far as it can be detected; "none" for a physical machine."""
    dmi = [read_text(system / _DMI / name) or "" for name in ("sys_vendor", "product_name")]
    named = hypervisors.detect_hypervisor(" ".join(dmi)) or read_text(
        system / "sys/hypervisor/type"
    )
    if "microsoft" in (read_text(system / "proc/sys/kernel/osrelease") or "").lower():
        named = "wsl"
    if named:
        return named
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if flags is None:  # only x86 has the flag
        return None
    if " hypervisor" not in flags.group(1):
        return "none"
    clocks = read_text(system / _CLOCK / "available_clocksource") or ""
    return hypervisors.detect_clock_hypervisor(clocks) or "virtual machine"


def detect_container(system: Path) -> Optional[str]:
    """Return the kind of container of this process, "none" if none is detected."""
    if (system / ".dockerenv").exists():
        return "docker"
    if (system / "run/.containerenv").exists():
        return "podman"
    systemd = read_text(system / "run/systemd/container")
    groups = read_text(system / "proc/1/cgroup") or ""
    match = re.search(r"docker|kubepods|lxc|libpod", groups)
    return systemd or (match.group() if match else "none")


def read_power(system: Path) -> dict[str, Any]:
    """Return `power_source` "mains" or "battery", and the charge of the battery."""
    supplies = list((system / "sys/class/power_supply").glob("*"))
    mains = [
        read_text(path / "online") for path in supplies if _read_kind(path) in ("Mains", "USB")
    ]
    batteries = [
        path for path in supplies if _read_kind(path) == "Battery" and not _is_device_battery(path)
    ]
    levels = [read_text(path / "capacity") for path in batteries]
    percent = [int(level) for level in levels if level and level.isdigit()]
    states = [read_text(path / "status") for path in batteries]
    source = None
    if "1" in mains or any(state in ("Charging", "Full", "Not charging") for state in states):
        source = "mains"
    elif "0" in mains or "Discharging" in states:
        source = "battery"
    return {"power_source": source, "battery_percent": min(percent) if percent else None}


def _read_kind(supply: Path) -> Optional[str]:
    return read_text(supply / "type")


def _is_device_battery(supply: Path) -> bool:
    """Return whether it is the battery of a device, such as a mouse, and not of the machine."""
    return read_text(supply / "scope") == "Device"


def read_temperatures(system: Path = SYSTEM) -> dict[str, float]:
    """Return degrees Celsius by sensor."""
    read = {name: _read_degrees(path) for name, path in _list_sensors(system).items()}
    return {name: value for name, value in read.items() if value is not None}


def read_temperature_c(system: Path = SYSTEM) -> Optional[float]:
    """Return the temperature of the hottest sensor of the CPU."""
    read = map(_read_degrees, _list_cpu_sensors(system))
    return max((value for value in read if value is not None), default=None)


@functools.lru_cache(maxsize=8)
def _list_cpu_sensors(system: Path) -> tuple[Path, ...]:
    """Return the sensors; cached, so that a sample does not search all chips again."""
    return tuple(path for name, path in _list_sensors(system).items() if _is_cpu_sensor(name))


def _list_sensors(system: Path) -> dict[str, Path]:
    sensors = {}
    for chip in sorted(system.glob("sys/class/hwmon/hwmon*")):
        name = read_text(chip / "name") or chip.name
        for path in sorted(chip.glob("temp*_input")):
            plain = path.name[: -len("_input")]
            sensors[f"{name} {read_text(chip / f'{plain}_label') or plain}"] = path
    for zone in sorted(system.glob("sys/class/thermal/thermal_zone*")):
        sensors[read_text(zone / "type") or zone.name] = zone / "temp"
    return sensors


def _is_cpu_sensor(sensor: str) -> bool:
    return sensor.split()[0] in _CPU_CHIPS or sensor in _CPU_ZONES


def _read_degrees(path: Path) -> Optional[float]:
    thousandths = read_number(path)
    return None if thousandths is None else thousandths / 1000


def read_clock_mhz(
    cpus: Optional[Collection[int]] = None, system: Path = SYSTEM
) -> Optional[float]:
    """Return the highest current clock of the first of these CPUs; None = of the machine.

    An idle CPU has a low clock, which says nothing about the load.
    """
    chosen = None if cpus is None else tuple(sorted(cpus))
    clocks = map(read_mhz, list_clock_files("scaling_cur_freq", chosen, system))
    return max((clock for clock in clocks if clock is not None), default=None)


def _read_uptime_s(system: Path) -> Optional[float]:
    text = read_text(system / "proc/uptime")
    return float(text.split()[0]) if text else None


def _parse_field(cpuinfo: str, key: str) -> Optional[str]:
    match = re.search(rf"^{key}\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1).strip() if match else None
