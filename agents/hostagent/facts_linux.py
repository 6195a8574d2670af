"""Facts of a Linux host, from /proc and /sys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Optional

_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")


def read() -> dict[str, Any]:
    cpuinfo = _text(Path("/proc/cpuinfo")) or ""
    release = os_release(_text(Path("/etc/os-release")) or "")
    return {
        "cpu_model": cpu_model(cpuinfo),
        "cores": cores(cpuinfo),
        "clock_min_mhz": _mhz(_CPU / "cpuinfo_min_freq"),
        "clock_max_mhz": _mhz(_CPU / "cpuinfo_max_freq"),
        "memory_bytes": memory_bytes(_text(Path("/proc/meminfo")) or ""),
        "os_name": release.get("NAME"),
        "os_version": release.get("VERSION_ID"),
        "governor": _text(_CPU / "scaling_governor"),
        "virtualisation": "virtual machine" if " hypervisor" in cpuinfo else None,
        "clock_source": _text(
            Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        ),
    }


def cpu_model(cpuinfo: str) -> Optional[str]:
    """From /proc/cpuinfo; ARM kernels name the model in other fields, or not at all."""
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else None


def cores(cpuinfo: str) -> Optional[int]:
    """Physical cores: distinct (physical id, core id); None where the kernel does not number."""
    pairs = set()
    for block in cpuinfo.split("\n\n"):
        fields = dict(re.findall(r"^(physical id|core id)\s*:\s*(\d+)$", block, re.MULTILINE))
        if len(fields) == 2:
            pairs.add((fields["physical id"], fields["core id"]))
    return len(pairs) or None


def memory_bytes(meminfo: str) -> Optional[int]:
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def os_release(text: str) -> dict[str, str]:
    return {
        key: value.strip("\"'")
        for key, value in re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)
    }


def _mhz(path: Path) -> Optional[float]:
    text = _text(path)
    return int(text) / 1000 if text and text.isdigit() else None


def _text(path: Path) -> Optional[str]:
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None
