"""Signs that a Linux host lowers the clocks of its CPUs because of heat or power.

Intel CPUs count throttling (counters.py). Other CPUs have no counter. There the kernel shows the
state of its cooling devices and the limit of the clocks. The firmware of a Raspberry Pi shows
flags. All are cheap enough to be read once per second.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import Path
from typing import Optional

from ..counters import Throttling
from .kernel_settings import read_of_all_cpus, read_turbo
from .sysfs import CPU, SYSTEM, read_mhz, read_number, read_text

#: Types of cooling devices that slow CPUs down: of ACPI, of device trees, and by idling.
_COOLING = (
    "Processor",
    "cpufreq-",
    "thermal-cpufreq-",
    "idle-",
    "thermal-idle-",
    "intel_powerclamp",
)
_RASPBERRY = "sys/devices/platform/soc*/soc*:firmware/get_throttled"
#: Under-voltage, clock capped, throttled, soft temperature limit: now, not since boot.
_RASPBERRY_NOW = 0xF
#: Enough to see a limit; reading all of a large machine would disturb what is measured.
MOST_CPUS = 8


def read_throttling(cpus: Optional[Collection[int]] = None, system: Path = SYSTEM) -> Throttling:
    """Return the signs of now; `cpus`: those of the trial, None = all."""
    chosen = None if cpus is None else tuple(sorted(cpus))
    limits = [read_mhz(path) for path in list_clock_files("scaling_max_freq", chosen, system)]
    states = [read_number(path) for path in _list_cooling_files(system)]
    flags = [_count_flags(path) for path in _list_raspberry_files(system)]
    return Throttling(
        clock_limit_mhz=min((limit for limit in limits if limit is not None), default=None),
        cooling_state=max((state for state in states + flags if state is not None), default=None),
    )


def read_base_clock_mhz(system: Path = SYSTEM) -> Optional[float]:
    """Return the clock that a CPU holds without turbo; None if no driver reports it.

    Intel and CPUs with CPPC report it. A CPU without turbo has its highest clock as the base.
    """
    first = system / CPU / "cpu0"
    base = read_mhz(first / "cpufreq/base_frequency") or read_number(
        first / "acpi_cppc/nominal_freq"
    )
    if base is None and read_turbo(system) is None:
        base = read_mhz(first / "cpufreq/cpuinfo_max_freq")
    return base


def read_held_clock_mhz(system: Path = SYSTEM) -> Optional[float]:
    """Return the base clock if the governor never selects a lower one, else None."""
    if read_of_all_cpus(system, "scaling_governor") != "performance":
        return None
    return read_base_clock_mhz(system)


@functools.lru_cache(maxsize=16)
def list_clock_files(
    name: str, cpus: Optional[tuple[int, ...]], system: Path = SYSTEM
) -> tuple[Path, ...]:
    """Return a file of the first of these CPUs; cached, so that a sample does not search again."""
    if cpus is None:
        paths = sorted(system.glob(f"{CPU}/cpu[0-9]*/cpufreq/{name}"))
    else:
        paths = [system / CPU / f"cpu{cpu}/cpufreq/{name}" for cpu in cpus]
    return tuple(paths[:MOST_CPUS])


@functools.lru_cache(maxsize=8)
def _list_cooling_files(system: Path) -> tuple[Path, ...]:
    devices = sorted(system.glob("sys/class/thermal/cooling_device*"))
    slowing = [each for each in devices if (read_text(each / "type") or "").startswith(_COOLING)]
    return tuple(each / "cur_state" for each in slowing[:MOST_CPUS])


@functools.lru_cache(maxsize=8)
def _list_raspberry_files(system: Path) -> tuple[Path, ...]:
    return tuple(system.glob(_RASPBERRY))


def _count_flags(path: Path) -> Optional[int]:
    """Return how many flags the firmware of a Raspberry Pi shows for now."""
    text = read_text(path)
    try:
        return None if text is None else bin(int(text, 16) & _RASPBERRY_NOW).count("1")
    except ValueError:
        return None
