"""Two looks at a machine's counters, and what happened between them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple, Optional

from ..platform import system
from ..platform.counters import Consumer, Counters, Times

_INTERRUPTS = ("ksoftirqd/", "irq/", "napi/")


class CounterSnapshot(NamedTuple):
    """`own_s`: CPU of the agent itself."""

    monotonic_s: float
    own_s: float
    counters: Counters


def take_snapshot(cpus: Optional[Collection[int]]) -> CounterSnapshot:
    """`cpus`: those whose time matters; None = all."""
    return CounterSnapshot(time.monotonic(), time.process_time(), system.counters(cpus))


class ForeignProcess(NamedTuple):
    """What a process that is not ours used between two looks, and where it was seen."""

    name: str
    cpu_s: float
    cpus: frozenset[int]


def find_foreign_processes(
    before: Optional[Mapping[int, Consumer]],
    after: Optional[Mapping[int, Consumer]],
    own_pids: Collection[int],
) -> Optional[list[ForeignProcess]]:
    """Those who used CPU in between, the thirstiest first; None where it is not told.

    Threads of the kernel that work off interrupts are left out: it is mostly our own packets.
    """
    if before is None or after is None:
        return None
    inherited, found = _inherited(before, after), []
    for pid, now in after.items():
        was = before.get(pid, now._replace(cpu_s=0.0))
        cpu_s = now.cpu_s - was.cpu_s - inherited.get(pid, 0.0)
        if cpu_s > 0 and pid not in own_pids and not now.name.startswith(_INTERRUPTS):
            found.append(ForeignProcess(now.name, round(cpu_s, 3), frozenset((was.cpu, now.cpu))))
    return sorted(found, key=lambda foreign: foreign.cpu_s, reverse=True)


def _inherited(before: Mapping[int, Consumer], after: Mapping[int, Consumer]) -> dict[int, float]:
    """By pid, what it has of processes that ended since, and that they had used before.

    What a process has used until it ended goes to the parent that waits for it.
    """
    found: dict[int, float] = {}
    for pid in before.keys() - after.keys():
        heir = before[pid].parent
        while heir in before and heir not in after:
            heir = before[heir].parent
        found[heir] = found.get(heir, 0.0) + before[pid].cpu_s
    return found


def foreign_cpu_s(
    foreign: Optional[list[ForeignProcess]], cpus: Optional[Collection[int]]
) -> Optional[float]:
    """CPU seconds of those that were seen on one of these CPUs; None = on any."""
    if foreign is None:
        return None
    return sum(each.cpu_s for each in foreign if cpus is None or not each.cpus.isdisjoint(cpus))


def add_known(*parts: Optional[float]) -> Optional[float]:
    """Their sum; None where one of them is."""
    return None if None in parts else sum(part for part in parts if part is not None)


def clamp(value: Optional[float], least: Optional[float], most: Optional[float]) -> Optional[float]:
    """The value, or the bound that it breaks; `least` where it is not known."""
    at_least = max((each for each in (value, least) if each is not None), default=None)
    return at_least if at_least is None or most is None else min(at_least, most)


def busy_s(
    start: CounterSnapshot, end: CounterSnapshot, *, interrupts: bool = False
) -> Optional[float]:
    """What the CPUs worked, with or without what they did for interrupts.

    Kernels without accounting of interrupts count them among the time of processes as well. So
    what others used is at least this less our own, and with interrupts at most.
    """
    pairs = _pairs(start.counters, end.counters)
    if pairs is None:
        return None
    seconds = end.monotonic_s - start.monotonic_s
    unworked = (
        now.idle_s - was.idle_s + now.stolen_s - was.stolen_s
        + (0.0 if interrupts else now.interrupts_s - was.interrupts_s)
        for was, now in pairs
    )  # fmt: skip
    return sum(seconds - each for each in unworked)


def stolen_share(was: Counters, now: Counters, seconds: float) -> Optional[float]:
    """What a hypervisor took of their time."""
    pairs = _pairs(was, now)
    if pairs is None:
        return None
    return ratio(sum(b.stolen_s - a.stolen_s for a, b in pairs), seconds * len(pairs))


def _pairs(was: Counters, now: Counters) -> Optional[list[tuple[Times, Times]]]:
    """Before and after, by CPU; None where no time is told or a CPU came or went."""
    if was.cpus is None or now.cpus is None or was.cpus.keys() != now.cpus.keys():
        return None
    return [(was.cpus[cpu], now.cpus[cpu]) for cpu in was.cpus]


def joules(was: Counters, now: Counters) -> Optional[float]:
    """What all packages used."""
    if was.energy is None or now.energy is None or was.energy.keys() != now.energy.keys():
        return None
    spent = 0.0
    for package, last in now.energy.items():
        growth = last.joules - was.energy[package].joules
        spent += growth if growth >= 0 else growth + last.wraps_at_j
    return round(spent, 3)


def ratio(part: Optional[float], whole: float) -> Optional[float]:
    """None where there is no whole."""
    return None if part is None or whole <= 0 else round(max(0.0, part) / whole, 6)
