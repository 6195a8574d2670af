"""What a host is like before a trial, and while its load runs: what its validity rests on.

On each host of the trial, once before anything of it starts (takes LOOK_S):

    ambient.before()                                        -> AMBIENT_BEFORE

and around each measured load, on each host:

    trees = Trees(children of all parts that run on this host)       # process_trees.py
    during = During(cpus)            just before the load starts
    during.look()                    often while it runs; Sampler(…, sensors=during.look) does so
    during.end(added(trees.cpu_s(), tool_cpu_s), trees.pids())       -> AMBIENT_DURING

`cpus`: all CPUs that parts of this host and the load tool are held to; None as soon as one of them
is held to none. `tool_cpu_s`: where the tool ran on this host and has ended; else leave it out.

Both are objects of JSON. A fact that cannot be read is null, and why is in "reasons".

AMBIENT_BEFORE: "cpus" of the machine · "load1" · "run_queue" (processes that could run, less
ourselves) · "busy_share" (CPU of all others over a short look, of the whole machine) · "pressure"
(the share of that look in which something waited for a CPU; avg10 would still tell of the trial
before) · "on_battery" · "temperature_c" · "clock_mhz" · "boot_id".

AMBIENT_DURING: "seconds" · "cpus" (that were looked at) · "steal_share" (of their time) ·
"foreign_cpu_s", "foreign_share" (what others used of these CPUs; 0.05 = 5 % of one core) ·
"foreign" [{"name", "cpu_s"}] (the three others that used most, on any CPU) · "pressure_share" (in
which something waited for a CPU, ourselves included) · "retransmitted_share" (of TCP segments) ·
"listen_overflows", "listen_drops" · "ports_exhausted" (at the end) · "swapped_pages" ·
"throttle_count" (by heat) · "quota_periods" (in which a quota that was set on us from above was
used up) · "temperature_c", "clock_mhz" [min, max] · "clock_step_s" (of the wall clock against the
monotonic one) · "octets_out", "octets_in" (IP, loopback included) · "energy_j" (of the CPU
packages) · "on_battery" · "boot_id".
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any, Optional

from ..platform import system
from ..platform.usage import grown
from .counter_deltas import (
    CounterSnapshot,
    ForeignProcess,
    add_known,
    busy_s,
    clamp,
    find_foreign_processes,
    foreign_cpu_s,
    joules,
    ratio,
    stolen_share,
    take_snapshot,
)
from .sampler import load1

ENVIRONMENT_S = 0.3
PERIOD_S = 1.0
MAX_FOREIGN = 3
#: Under these there is a count, and no share: the kernel counts CPU time in ticks of 10 ms.
SHORTEST_S = 1.0
FEWEST_SEGMENTS = 1000
#: Elsewhere wall and monotonic clock run apart by themselves, or tick too coarsely to tell.
_CLOCKS_AGREE = sys.platform.startswith("linux")
_TOO_SHORT = {
    "steal_share": f"the load took less than {SHORTEST_S:g} s, or no CPU time is told",
    "foreign_share": f"the load took less than {SHORTEST_S:g} s, or no CPU time is told",
    "retransmitted_share": f"fewer than {FEWEST_SEGMENTS} TCP segments were sent",
}
_COUNTED = ("listen_overflows", "listen_drops", "swapped_pages", "throttle_count", "quota_periods")


def measure_environment() -> dict[str, Any]:
    """AMBIENT_BEFORE; takes LOOK_S."""
    start = take_snapshot(None)
    time.sleep(ENVIRONMENT_S)
    standing, end = system.standing(), take_snapshot(None)
    others_s = add_known(busy_s(start, end), start.own_s - end.own_s)
    total_s = (end.monotonic_s - start.monotonic_s) * len(end.counters.cpus or ())
    pressed_s = grown(start.counters, end.counters, "pressure_s")
    known = {
        "load1": load1(),
        "run_queue": standing.run_queue,
        "busy_share": ratio(others_s, total_s),
        "pressure": ratio(pressed_s, end.monotonic_s - start.monotonic_s),
        "on_battery": standing.on_battery,
        "temperature_c": system.temperature_c(),
        "clock_mhz": system.clock_mhz(),
        "boot_id": standing.boot_id,
    }
    return {"cpus": os.cpu_count(), **known, "reasons": _reasons(known)}


class InterferenceMonitor:
    """See the module's docstring."""

    def __init__(self, cpus: Optional[Collection[int]] = None) -> None:
        self._cpus = None if cpus is None else frozenset(cpus)
        self._next_s = 0.0
        self._last_reading: tuple[Optional[float], Optional[float]] = (None, None)
        self._temperatures: list[float] = []
        self._clocks: list[float] = []
        self._consumers = system.consumers()
        self._start = take_snapshot(self._cpus)
        self._start_offset_s = _clock_offset_s()

    def sample(self) -> tuple[Optional[float], Optional[float]]:
        """Temperature and clock, at most a second old."""
        now = time.monotonic()
        if now >= self._next_s:
            self._next_s = now + 0.9 * PERIOD_S
            self._last_reading = (system.temperature_c(), system.clock_mhz(self._cpus))
            for value, kept in zip(self._last_reading, (self._temperatures, self._clocks)):
                if value is not None:
                    kept.append(value)
        return self._last_reading

    def end(self, own_cpu_s: Optional[float], own_pids: Collection[int]) -> dict[str, Any]:
        """AMBIENT_DURING.

        `own_cpu_s`: what our parts on this host used meanwhile, the agent left out; None where
        that is not known.
        """
        offset_s, end = _clock_offset_s(), take_snapshot(self._cpus)
        standing = system.standing()
        seconds = end.monotonic_s - self._start.monotonic_s
        counted = self._counter_facts(end, seconds)
        known = {
            **counted,
            **self._foreign_facts(end, seconds, own_cpu_s, {*own_pids, os.getpid()}),
            "ports_exhausted": system.ports_exhausted(),
            "temperature_c": _range(self._temperatures),
            "clock_mhz": _range(self._clocks),
            "clock_step_s": round(offset_s - self._start_offset_s, 6) if _CLOCKS_AGREE else None,
            "on_battery": standing.on_battery,
            "boot_id": standing.boot_id,
        }
        cpus = None if self._cpus is None else sorted(self._cpus)
        return {"seconds": seconds, "cpus": cpus, **known, "reasons": _reasons(known)}

    def _counter_facts(self, end: CounterSnapshot, seconds: float) -> dict[str, Any]:
        was, now = self._start.counters, end.counters
        resent, sent = (grown(was, now, f"segments_{name}") for name in ("resent", "sent"))
        return {
            "steal_share": None if seconds < SHORTEST_S else stolen_share(was, now, seconds),
            "pressure_share": ratio(grown(was, now, "pressure_s"), seconds),
            "retransmitted_share": None if (sent or 0) < FEWEST_SEGMENTS else ratio(resent, sent),
            **{name: grown(was, now, name) for name in _COUNTED},
            "octets_out": grown(was, now, "octets_out"),
            "octets_in": grown(was, now, "octets_in"),
            "energy_j": joules(was, now),
        }

    def _foreign_facts(
        self,
        end: CounterSnapshot,
        seconds: float,
        own_cpu_s: Optional[float],
        own_pids: Collection[int],
    ) -> dict[str, Any]:
        """The sum over processes, held to what the CPUs worked without us.

        It knows nothing of processes that began and ended in between, and too much of those that
        lost their parent.
        """
        ours_s = None if own_cpu_s is None else self._start.own_s - end.own_s - own_cpu_s
        foreign = find_foreign_processes(self._consumers, system.consumers(), own_pids)
        least, most = (
            add_known(busy_s(self._start, end, interrupts=each), ours_s) for each in (False, True)
        )
        foreign_s = clamp(foreign_cpu_s(foreign, self._cpus), least, most)
        return {
            "foreign_cpu_s": None if foreign_s is None else round(max(0.0, foreign_s), 3),
            "foreign_share": None if seconds < SHORTEST_S else ratio(foreign_s, seconds),
            "foreign": foreign and [_foreign_json(each) for each in foreign[:MAX_FOREIGN]],
        }


def _foreign_json(foreign: ForeignProcess) -> dict[str, Any]:
    return {"name": foreign.name, "cpu_s": foreign.cpu_s}


def _range(values: list[float]) -> Optional[list[float]]:
    return [min(values), max(values)] if values else None


def _clock_offset_s() -> float:
    """Wall clock less monotonic clock, from the closest of a few pairs of looks."""
    looks = []
    for _ in range(5):
        first, wall, last = time.monotonic(), time.time(), time.monotonic()
        looks.append((last - first, wall - (first + last) / 2))
    return min(looks)[1]


def _reasons(known: Mapping[str, Any]) -> dict[str, str]:
    """Why, for each fact that is not known."""
    why = {**_TOO_SHORT, **system.why_unknown()}
    if not _CLOCKS_AGREE:
        why["clock_step_s"] = "the clocks of this system run apart without anybody setting them"
    return {
        key: why.get(key, "the system did not tell, or a count began anew")
        for key, value in known.items()
        if value is None
    }
