"""Two snapshots of the counters of a host, and their differences."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple, Optional

from ..platform import system
from ..platform.counters import Consumer, Counters, CpuTimes
from ..platform.usage import compute_growth

#: No share of TCP segments if fewer were sent: each would count too much.
FEWEST_SEGMENTS = 1000
_INTERRUPTS = ("ksoftirqd/", "irq/", "napi/")


class CounterSnapshot(NamedTuple):
    """`own_s`: CPU time of the agent itself."""

    monotonic_s: float
    own_s: float
    counters: Counters


def take_snapshot(cpus: Optional[Collection[int]]) -> CounterSnapshot:
    """Take a snapshot; `cpus`: those whose time is counted, None = all."""
    return CounterSnapshot(time.monotonic(), time.process_time(), system.read_counters(cpus))


class ForeignProcess(NamedTuple):
    """The CPU time of another process between two snapshots, and the CPUs that it ran on."""

    name: str
    cpu_s: float
    cpus: frozenset[int]


def find_foreign_processes(
    before: Optional[Mapping[int, Consumer]],
    after: Optional[Mapping[int, Consumer]],
    own_pids: Collection[int],
) -> Optional[list[ForeignProcess]]:
    """Return the other processes that used CPU time, the highest first; None if unknown.

    Kernel threads that handle interrupts are excluded: they mostly handle packets of the trial.
    """
    if before is None or after is None:
        return None
    inherited, processes = _sum_inherited_times(before, after), []
    for pid, now in after.items():
        was = before.get(pid, now._replace(cpu_s=0.0))
        cpu_s = now.cpu_s - was.cpu_s - inherited.get(pid, 0.0)
        if cpu_s > 0 and pid not in own_pids and not now.name.startswith(_INTERRUPTS):
            cpus = frozenset((was.cpu, now.cpu))
            processes.append(ForeignProcess(now.name, round(cpu_s, 3), cpus))
    return sorted(processes, key=lambda process: process.cpu_s, reverse=True)


def _sum_inherited_times(
    before: Mapping[int, Consumer], after: Mapping[int, Consumer]
) -> dict[int, float]:
    """Return by pid the CPU time before the first snapshot of processes that ended since.

    When a process ends, its CPU time is added to the parent that waits for it.
    """
    inherited: dict[int, float] = {}
    for pid in before.keys() - after.keys():
        heir = before[pid].parent
        while heir in before and heir not in after:
            heir = before[heir].parent
        inherited[heir] = inherited.get(heir, 0.0) + before[pid].cpu_s
    return inherited


def sum_foreign_cpu_s(
    foreign: Optional[list[ForeignProcess]], cpus: Optional[Collection[int]]
) -> Optional[float]:
    """Return CPU seconds of the processes on one of these CPUs; None = on any."""
    if foreign is None:
        return None
    return sum(
        process.cpu_s for process in foreign if cpus is None or not process.cpus.isdisjoint(cpus)
    )


def add_known(*parts: Optional[float]) -> Optional[float]:
    """Return the sum; None if a part is None."""
    return None if None in parts else sum(part for part in parts if part is not None)


def clamp(value: Optional[float], least: Optional[float], most: Optional[float]) -> Optional[float]:
    """Return the value, limited to the bounds; `least` if it is unknown."""
    at_least = max((number for number in (value, least) if number is not None), default=None)
    return at_least if at_least is None or most is None else min(at_least, most)


def compute_busy_s(
    start: CounterSnapshot, end: CounterSnapshot, *, interrupts: bool = False
) -> Optional[float]:
    """Return the busy time of the CPUs, with or without the time for interrupts.

    Kernels without interrupt accounting add that time to processes. So the time of other processes
    lies between the busy time without and with interrupts, each minus the time of this trial.
    """
    pairs = _pair_cpu_times(start.counters, end.counters)
    if pairs is None:
        return None
    seconds = end.monotonic_s - start.monotonic_s
    idle = (
        now.idle_s - was.idle_s + now.stolen_s - was.stolen_s
        + (0.0 if interrupts else now.interrupts_s - was.interrupts_s)
        for was, now in pairs
    )  # fmt: skip
    return sum(seconds - idle_s for idle_s in idle)


def compute_stolen_share(was: Counters, now: Counters, seconds: float) -> Optional[float]:
    """Return the share of the CPUs' time that the hypervisor took."""
    pairs = _pair_cpu_times(was, now)
    if pairs is None:
        return None
    return compute_ratio(sum(b.stolen_s - a.stolen_s for a, b in pairs), seconds * len(pairs))


def compute_resent_share(was: Counters, now: Counters) -> Optional[float]:
    """Return the share of TCP segments that were lost and sent again.

    Linux also sends a segment again if its acknowledgement is only late (tail loss probe,
    RFC 8985). The receiver reports a duplicate then, which does not count.
    """
    resent, duplicate, sent = (
        compute_growth(was, now, f"segments_{name}") for name in ("resent", "duplicate", "sent")
    )
    if resent is None or sent is None or sent < FEWEST_SEGMENTS:
        return None
    return compute_ratio(resent - (duplicate or 0), sent)


def _pair_cpu_times(was: Counters, now: Counters) -> Optional[list[tuple[CpuTimes, CpuTimes]]]:
    """Return the times before and after, by CPU; None without times, or if the CPUs changed."""
    if was.cpus is None or now.cpus is None or was.cpus.keys() != now.cpus.keys():
        return None
    return [(was.cpus[cpu], now.cpus[cpu]) for cpu in was.cpus]


def compute_joules(was: Counters, now: Counters) -> Optional[float]:
    """Return the energy of all CPU packages."""
    if was.energy is None or now.energy is None or was.energy.keys() != now.energy.keys():
        return None
    spent = 0.0
    for package, last in now.energy.items():
        growth = last.joules - was.energy[package].joules
        spent += growth if growth >= 0 else growth + last.wraps_at_j
    return round(spent, 3)


def compute_ratio(part: Optional[float], whole: float) -> Optional[float]:
    """Return part / whole; None without a part or a positive whole."""
    return None if part is None or whole <= 0 else round(max(0.0, part) / whole, 6)
