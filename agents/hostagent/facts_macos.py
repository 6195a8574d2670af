"""Facts of a macOS host, from sysctl(8) and sw_vers(1)."""

from __future__ import annotations

import subprocess
from typing import Any, Optional

KEYS = {
    "cpu_model": "machdep.cpu.brand_string",
    "cores": "hw.physicalcpu",
    "memory_bytes": "hw.memsize",
    "clock_min_hz": "hw.cpufrequency_min",
    "clock_max_hz": "hw.cpufrequency_max",
}


def read() -> dict[str, Any]:
    return from_output(_run("sysctl", *KEYS.values()), _run("sw_vers"))


def from_output(sysctl: str, sw_vers: str) -> dict[str, Any]:
    """The facts in what the two programs print; Apple silicon tells no frequencies."""
    values = _pairs(sysctl)
    versions = _pairs(sw_vers)
    return {
        "cpu_model": values.get(KEYS["cpu_model"]),
        "cores": _whole(values.get(KEYS["cores"])),
        "memory_bytes": _whole(values.get(KEYS["memory_bytes"])),
        "clock_min_mhz": _mhz(values.get(KEYS["clock_min_hz"])),
        "clock_max_mhz": _mhz(values.get(KEYS["clock_max_hz"])),
        "os_name": versions.get("ProductName"),
        "os_version": versions.get("ProductVersion"),
    }


def _run(*argv: str) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _pairs(text: str) -> dict[str, str]:
    found = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in found if colon}


def _whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isdigit() else None


def _mhz(text: Optional[str]) -> Optional[float]:
    hertz = _whole(text)
    return hertz / 1e6 if hertz else None
