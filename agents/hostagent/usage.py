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
    """Sums over a tree; None for what the system does not tell us of each process in it.

    `peak_rss_bytes` adds up each process's own peak; read and written is what storage moved.
    """

    cpu_s: Optional[float]
    rss_bytes: Optional[int]
    peak_rss_bytes: Optional[int]
    voluntary_switches: Optional[int]
    involuntary_switches: Optional[int]
    read_bytes: Optional[int]
    written_bytes: Optional[int]


def of_tree(pids: Iterable[int]) -> Optional[Usage]:
    """What the living processes `pids` used so far; None without /proc or with none alive."""
    alive = [pid for pid in pids if HAS_PROC and stat_fields(pid)]
    if not alive:
        return None
    switches = [text for pid in alive for text in _task_texts(pid)]
    moved = [read_proc(pid, "io") for pid in alive]
    return Usage(
        cpu_s=sum(map(_cpu_s, alive)),
        rss_bytes=sum(_memory(pid, "VmRSS") for pid in alive),
        peak_rss_bytes=sum(_memory(pid, "VmHWM") for pid in alive),
        voluntary_switches=_total(switches, "voluntary_ctxt_switches"),
        involuntary_switches=_total(switches, "nonvoluntary_ctxt_switches"),
        read_bytes=_total(moved, "read_bytes"),
        written_bytes=_total(moved, "write_bytes"),
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


def _task_texts(pid: int) -> list[Optional[str]]:
    """`status` of each thread; without those that ended while we looked."""
    texts = [read_proc(pid, f"task/{task}/status") for task in _tasks(pid)]
    return [text for text in texts if text]


def _total(texts: list[Optional[str]], key: str) -> Optional[int]:
    """The sum of `key: number` over all `texts`; None where one of them could not be read."""
    found = [re.search(rf"^{key}:\s+(\d+)", text or "", re.MULTILINE) for text in texts]
    numbers = [int(match.group(1)) for match in found if match]
    return sum(numbers) if len(numbers) == len(found) else None


def stolen_s() -> Optional[float]:
    """Time that the hypervisor took from this machine since boot; None where it is not told."""
    try:
        cpu = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    return int(cpu[8]) / os.sysconf("SC_CLK_TCK") if len(cpu) > 8 else None
