"""CPU time, memory and switches of process trees; Linux only, elsewhere unknown with a reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .proctable import HAS_PROC, read_proc, stat_fields


@dataclass(frozen=True)
class Usage:
    """Sums over a tree. `peak_rss_bytes` adds up each process's own peak (VmHWM)."""

    cpu_s: float
    rss_bytes: int
    peak_rss_bytes: int
    voluntary_switches: int


def of_tree(pids: Iterable[int]) -> Optional[Usage]:
    """What the living processes `pids` used so far; None without /proc or with none alive."""
    alive = [pid for pid in pids if HAS_PROC and stat_fields(pid)]
    if not alive:
        return None
    return Usage(
        cpu_s=sum(map(_cpu_s, alive)),
        rss_bytes=sum(_memory(pid, "VmRSS") for pid in alive),
        peak_rss_bytes=sum(_memory(pid, "VmHWM") for pid in alive),
        voluntary_switches=sum(map(_switches, alive)),
    )


def _cpu_s(pid: int) -> float:
    """CPU of the process and of the children that it has waited for.

    `stat` counts ended threads too, but in grains of 10 ms, rounded down; `schedstat` counts
    nanoseconds, but only of living threads. Neither says too much, so the larger one is nearer.
    """
    fields = stat_fields(pid)
    if not fields:
        return 0.0
    user, system, child_user, child_system = map(int, fields[11:15])
    tick = os.sysconf("SC_CLK_TCK")
    own = max((user + system) / tick, _scheduled_s(pid))
    return own + (child_user + child_system) / tick


def _scheduled_s(pid: int) -> float:
    texts = [read_proc(pid, f"task/{task}/schedstat") for task in _tasks(pid)]
    return sum(int(text.split()[0]) for text in texts if text) / 1e9


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _memory(pid: int, key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB", read_proc(pid, "status") or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def _switches(pid: int) -> int:
    texts = [read_proc(pid, f"task/{task}/status") or "" for task in _tasks(pid)]
    found = [re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE) for text in texts]
    return sum(int(match.group(1)) for match in found if match)


def stolen_s() -> Optional[float]:
    """Time that the hypervisor took from this machine since boot; None where it is not told."""
    try:
        cpu = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    return int(cpu[8]) / os.sysconf("SC_CLK_TCK") if len(cpu) > 8 else None
