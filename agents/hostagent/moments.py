"""Two looks at a machine's counters, and what happened between them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Optional

from . import system
from .counters import Consumer, Counters, Times

TOP = 3


class Moment(NamedTuple):
    """`own_s`: CPU of the agent itself."""

    monotonic_s: float
    own_s: float
    counters: Counters


def moment(cpus: Optional[Collection[int]]) -> Moment:
    """`cpus`: those whose time matters; None = all."""
    return Moment(time.monotonic(), time.process_time(), system.counters(cpus))


def foreigners(
    before: Optional[Mapping[int, Consumer]],
    after: Optional[Mapping[int, Consumer]],
    own_pids: Collection[int],
) -> Optional[list[dict[str, Any]]]:
    """The processes that used most CPU in between, our own left out."""
    if before is None or after is None:
        return None
    # What a process has used until it ended goes to the parent that waits for it.
    inherited: dict[int, float] = {}
    for pid in before.keys() - after.keys():
        parent = before[pid].parent
        inherited[parent] = inherited.get(parent, 0.0) + before[pid].cpu_s
    spent = [
        (now.cpu_s - (before[pid].cpu_s + inherited.get(pid, 0.0) if pid in before else 0.0), now)
        for pid, now in after.items()
        if pid not in own_pids
    ]
    most = sorted(spent, key=lambda pair: pair[0], reverse=True)[:TOP]
    return [{"name": who.name, "cpu_s": round(cpu_s, 3)} for cpu_s, who in most if cpu_s > 0]


def added(*parts: Optional[float]) -> Optional[float]:
    """Their sum; None where one of them is."""
    return None if None in parts else sum(part for part in parts if part is not None)


def worked_s(start: Moment, end: Moment) -> Optional[float]:
    """What the CPUs worked, interrupts left out: those are mostly our own packets."""
    pairs = _pairs(start.counters, end.counters)
    if pairs is None:
        return None
    seconds = end.monotonic_s - start.monotonic_s
    return sum(seconds - (sum(now) - sum(was)) for was, now in pairs)


def stolen_share(was: Counters, now: Counters, seconds: float) -> Optional[float]:
    """What a hypervisor took of their time."""
    pairs = _pairs(was, now)
    if pairs is None:
        return None
    return share(sum(b.stolen_s - a.stolen_s for a, b in pairs), seconds * len(pairs))


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


def share(part: Optional[float], whole: float) -> Optional[float]:
    """None where there is no whole."""
    return None if part is None or whole <= 0 else round(max(0.0, part) / whole, 6)
