"""The environment of a host before a trial, and the interference while its load runs.

Both decide the validity of a trial. On each host of the trial, while no process of a trial runs:

    monitor = EnvironmentMonitor()       when the processes of the trial before have been stopped
    monitor.end()                        just before those of this trial start  -> ENVIRONMENT

and around each measured load, on each host:

    trees = Trees(children of all parts that run on this host)       # process_trees.py
    monitor = InterferenceMonitor(cpus)      just before the load starts
    monitor.sample()                         often while it runs; Sampler(…, sensors=…) does so
    monitor.end(add_known(trees.cpu_s(), tool_cpu_s), trees.pids())  -> INTERFERENCE

`cpus`: those of this host's processes and the load tool, with all siblings; None if one of them may
run anywhere. `tool_cpu_s`: omit it if the tool ran on another host.

Both are JSON objects. A fact that cannot be read is null, with a reason in "reasons".

ENVIRONMENT, where shares are those of the time between the two calls, ENVIRONMENT_S to LONGEST_S:

    "cpus"                         CPUs of the machine
    "load1"                        load average of a minute
    "run_queue"                    runnable processes except the agent
    "busy_share"                   CPU share of all others on the whole machine
    "pressure"                     share of time when something waited for a CPU; avg10 would
                                   include the trial before
    "foreign" [{"name", "cpu_s"}]  the top three other processes
    "on_battery", "temperature_c", "clock_mhz", "boot_id"
    "tuning"                       TUNED of protocol.py, which the host adds

INTERFERENCE:

    "seconds", "cpus"              duration, and the observed CPUs
    "steal_share"                  share of their time that the hypervisor took
    "foreign_cpu_s"                use of these CPUs by others
    "foreign_share"                the same as a share; 0.05 = 5 % of one core
    "foreign" [{"name", "cpu_s"}]  the top three others, on any CPU
    "pressure_share"               share of time when something waited for a CPU, including the
                                   processes of the trial
    "retransmitted_share"          of TCP segments, without those that the receiver already had
    "listen_overflows", "listen_drops", "swapped_pages"
    "ports_exhausted"              at the end
    "throttle_count"               thermal, as Intel CPUs count it
    "cooling_state"                the highest state of a cooling device of the CPUs; 0: none
                                   slowed a CPU down
    "clock_limit_mhz"              [min, max] of the lowest allowed clock of a CPU
    "clock_base_mhz"               the base clock, if the governor never selects a lower one
    "quota_periods"                periods that exhausted a quota of a parent group
    "temperature_c", "clock_mhz"   [min, max]; the highest clock of a CPU
    "changed_settings"             {knob: reason}: settings of the tuning that something changed,
                                   which the host adds
    "log_bytes_per_s"              output of the processes of the trial, which the host adds; null
                                   in loads below SHORTEST_S
    "clock_step_s"                 of the wall clock against the monotonic clock
    "suspended_s"                  for how long the machine was asleep in between
    "octets_out", "octets_in"      IP, including loopback
    "energy_j"                     of the CPU packages
    "on_battery", "boot_id"
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any, Optional

from ..platform import system
from ..platform.affinity import read_own_cpus
from ..platform.counters import Throttling
from ..platform.usage import compute_growth
from .counter_deltas import (
    FEWEST_SEGMENTS,
    CounterSnapshot,
    ForeignProcess,
    add_known,
    clamp,
    compute_busy_s,
    compute_joules,
    compute_ratio,
    compute_resent_share,
    compute_stolen_share,
    find_foreign_processes,
    sum_foreign_cpu_s,
    take_snapshot,
)
from .sampler import read_load1

#: The kernel counts CPU time in ticks of 10 ms: the share has an error of 7 % of a CPU at most.
ENVIRONMENT_S = 0.15
#: A longer time would say less about the host just before the start of a trial.
LONGEST_S = 1.0
PERIOD_S = 1.0
MAX_FOREIGN = 3
#: No shares of CPU time below this value: the kernel counts CPU time in ticks of 10 ms.
SHORTEST_S = 1.0
#: On other systems the wall and monotonic clocks drift apart, or are too coarse.
_CLOCKS_AGREE = sys.platform.startswith("linux")
_TOO_SHORT = {
    "steal_share": f"the load took less than {SHORTEST_S:g} s, or CPU times are unknown",
    "foreign_share": f"the load took less than {SHORTEST_S:g} s, or CPU times are unknown",
    "retransmitted_share": f"fewer than {FEWEST_SEGMENTS} TCP segments were sent",
}
_COUNTED = ("listen_overflows", "listen_drops", "swapped_pages", "throttle_count", "quota_periods")


class EnvironmentMonitor:
    """Measures ENVIRONMENT; see the docstring of the module.

    The agent may work in the meantime, because its CPU time is subtracted. It must not start other
    programs, which would count as those of others.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._consumers = system.read_consumers()
        self._start = take_snapshot(None)

    def end(self) -> dict[str, Any]:
        """Return ENVIRONMENT; wait for the rest of ENVIRONMENT_S.

        If the monitor is older than LONGEST_S, it begins again.
        """
        if time.monotonic() - self._start.monotonic_s > LONGEST_S:
            self._begin()
        time.sleep(max(0.0, self._start.monotonic_s + ENVIRONMENT_S - time.monotonic()))
        current_state, start, end = system.read_current_state(), self._start, take_snapshot(None)
        foreign = find_foreign_processes(self._consumers, system.read_consumers(), {os.getpid()})
        others_s = add_known(compute_busy_s(start, end), start.own_s - end.own_s)
        seconds = end.monotonic_s - start.monotonic_s
        pressed_s = compute_growth(start.counters, end.counters, "pressure_s")
        known = {
            "load1": read_load1(),
            "run_queue": current_state.run_queue,
            "busy_share": compute_ratio(others_s, seconds * len(end.counters.cpus or ())),
            "pressure": compute_ratio(pressed_s, seconds),
            "foreign": _format_top(foreign),
            "on_battery": current_state.on_battery,
            "temperature_c": system.read_temperature_c(),
            "clock_mhz": system.read_clock_mhz(),
            "boot_id": current_state.boot_id,
        }
        return {"cpus": os.cpu_count(), **known, "reasons": _collect_reasons(known)}


class InterferenceMonitor:
    """Measures INTERFERENCE; see the docstring of the module."""

    def __init__(self, cpus: Optional[Collection[int]] = None) -> None:
        self._cpus = None if cpus is None else frozenset(cpus)
        self._next_s = 0.0
        self._last_reading: tuple[Optional[float], Optional[float]] = (None, None)
        self._temperatures: list[float] = []
        self._clocks: list[float] = []
        self._clock_limits: list[float] = []
        self._cooling_state: Optional[int] = None
        self._consumers = system.read_consumers()
        self._start = take_snapshot(self._cpus)
        self._start_offset_s = _measure_clock_offset_s()
        self._start_asleep_s = _read_asleep_s()

    def sample(self) -> tuple[Optional[float], Optional[float]]:
        """Return temperature and clock, at most a second old."""
        now = time.monotonic()
        if now >= self._next_s:
            self._next_s = now + 0.9 * PERIOD_S
            self._last_reading = (system.read_temperature_c(), system.read_clock_mhz(self._cpus))
            for value, values in zip(self._last_reading, (self._temperatures, self._clocks)):
                if value is not None:
                    values.append(value)
            self._note_throttling(system.read_throttling(self._cpus))
        return self._last_reading

    def _note_throttling(self, now: Throttling) -> None:
        if now.clock_limit_mhz is not None:
            self._clock_limits.append(now.clock_limit_mhz)
        if now.cooling_state is not None:
            self._cooling_state = max(self._cooling_state or 0, now.cooling_state)

    def end(self, own_cpu_s: Optional[float], own_pids: Collection[int]) -> dict[str, Any]:
        """Return INTERFERENCE.

        `own_cpu_s`: the CPU time of our processes on this host, without the agent; None if unknown.
        """
        offset_s, end = _measure_clock_offset_s(), take_snapshot(self._cpus)
        current_state = system.read_current_state()
        seconds = end.monotonic_s - self._start.monotonic_s
        counted = self._counter_facts(end, seconds)
        known = {
            **counted,
            **self._foreign_facts(end, seconds, own_cpu_s, {*own_pids, os.getpid()}),
            "ports_exhausted": system.are_ports_exhausted(),
            "temperature_c": _compute_range(self._temperatures),
            "clock_mhz": _compute_range(self._clocks),
            "cooling_state": self._cooling_state,
            "clock_limit_mhz": _compute_range(self._clock_limits),
            "clock_base_mhz": system.read_held_clock_mhz(),
            "clock_step_s": round(offset_s - self._start_offset_s, 6) if _CLOCKS_AGREE else None,
            "suspended_s": self._measure_suspension_s(),
            "on_battery": current_state.on_battery,
            "boot_id": current_state.boot_id,
        }
        cpus = None if self._cpus is None else sorted(self._cpus)
        return {"seconds": seconds, "cpus": cpus, **known, "reasons": _collect_reasons(known)}

    def _measure_suspension_s(self) -> Optional[float]:
        asleep_s = _read_asleep_s()
        if asleep_s is None or self._start_asleep_s is None:
            return None
        # The two clocks are not read at the same time.
        return round(max(0.0, asleep_s - self._start_asleep_s), 3)

    def _counter_facts(self, end: CounterSnapshot, seconds: float) -> dict[str, Any]:
        was, now = self._start.counters, end.counters
        return {
            "steal_share": None
            if seconds < SHORTEST_S
            else compute_stolen_share(was, now, seconds),
            "pressure_share": compute_ratio(compute_growth(was, now, "pressure_s"), seconds),
            "retransmitted_share": compute_resent_share(was, now),
            **{name: compute_growth(was, now, name) for name in _COUNTED},
            "octets_out": compute_growth(was, now, "octets_out"),
            "octets_in": compute_growth(was, now, "octets_in"),
            "energy_j": compute_joules(was, now),
        }

    def _foreign_facts(
        self,
        end: CounterSnapshot,
        seconds: float,
        own_cpu_s: Optional[float],
        own_pids: Collection[int],
    ) -> dict[str, Any]:
        """Return the sum over processes, limited to the busy time of the CPUs minus the time of
        this trial.

        The sum misses processes that started and ended in between, and counts too much of those
        whose parent ended.
        """
        ours_s = None if own_cpu_s is None else -own_cpu_s
        if ours_s is not None and self._is_agent_observed():
            ours_s += self._start.own_s - end.own_s
        foreign = find_foreign_processes(self._consumers, system.read_consumers(), own_pids)
        least, most = (
            add_known(compute_busy_s(self._start, end, interrupts=with_interrupts), ours_s)
            for with_interrupts in (False, True)
        )
        foreign_s = clamp(sum_foreign_cpu_s(foreign, self._cpus), least, most)
        return {
            "foreign_cpu_s": None if foreign_s is None else round(max(0.0, foreign_s), 3),
            "foreign_share": None if seconds < SHORTEST_S else compute_ratio(foreign_s, seconds),
            "foreign": _format_top(foreign),
        }

    def _is_agent_observed(self) -> bool:
        """Return whether the agent may run on the observed CPUs."""
        own = read_own_cpus()
        return self._cpus is None or own is None or not own.isdisjoint(self._cpus)


def _format_top(foreign: Optional[list[ForeignProcess]]) -> Optional[list[dict[str, Any]]]:
    """Return the processes that used the most CPU time; None if unknown."""
    if foreign is None:
        return None
    return [{"name": each.name, "cpu_s": each.cpu_s} for each in foreign[:MAX_FOREIGN]]


def _compute_range(values: list[float]) -> Optional[list[float]]:
    return [min(values), max(values)] if values else None


def _measure_clock_offset_s() -> float:
    """Return wall clock minus monotonic clock, from the fastest of five readings."""
    readings = []
    for _ in range(5):
        first, wall, last = time.monotonic(), time.time(), time.monotonic()
        readings.append((last - first, wall - (first + last) / 2))
    return min(readings)[1]


def _read_asleep_s() -> Optional[float]:
    """Return for how long the machine was asleep since its start; None if unknown.

    Linux only: its monotonic clock stops meanwhile, and its boot-time clock continues.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime(clock) - time.monotonic()


def _collect_reasons(known: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason for each unknown fact."""
    reasons = {**_TOO_SHORT, **system.explain_unknown()}
    if not _CLOCKS_AGREE:
        reasons["clock_step_s"] = "the clocks of this system drift apart by themselves"
    return {
        key: reasons.get(key, "the system did not report it, or a counter was reset")
        for key, value in known.items()
        if value is None
    }
