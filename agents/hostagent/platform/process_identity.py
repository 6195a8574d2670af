"""What distinguishes a process from all others that had or will have its pid. Linux only."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from .linux.facts import read_text

#: The index of `starttime` in /proc/PID/stat after the state (field 22 of proc(5)).
_START_TIME = 19


def read_start_time(pid: int) -> Optional[str]:
    """Return the start of the process in clock ticks since boot; None if it is unknown or gone."""
    text = read_text(Path("/proc", str(pid), "stat"))
    return text.rpartition(")")[2].split()[_START_TIME] if text else None


def read_boot_id() -> Optional[str]:
    return read_text(Path("/proc/sys/kernel/random/boot_id"))
