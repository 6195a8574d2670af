"""The counters of a machine since its start, for all systems; see system.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Optional

#: The facts of monitoring/environment.py, before and during a load.
FACTS = (
    "load1",
    "run_queue",
    "busy_share",
    "pressure",
    "on_battery",
    "temperature_c",
    "clock_mhz",
    "boot_id",
    "steal_share",
    "foreign_cpu_s",
    "foreign_share",
    "foreign",
    "pressure_share",
    "retransmitted_share",
    "listen_overflows",
    "listen_drops",
    "ports_exhausted",
    "swapped_pages",
    "throttle_count",
    "cooling_state",
    "clock_limit_mhz",
    "clock_base_mhz",
    "quota_periods",
    "clock_step_s",
    "suspended_s",
    "octets_out",
    "octets_in",
    "energy_j",
)


class CpuTimes(NamedTuple):
    """Seconds of one CPU. Idle includes waiting for storage; the rest of the time is busy."""

    idle_s: float
    interrupts_s: float
    stolen_s: float


class Energy(NamedTuple):
    """Joules of one package; the counter wraps at `wraps_at_j`."""

    joules: float
    wraps_at_j: float


class Counters(NamedTuple):
    """None for counters that the system does not report.

    `pressure_s`: time when something waited for a CPU. `quota_periods`: how many periods exhausted
    a CPU quota of the agent's group or a parent group. `segments_duplicate`: resent TCP segments
    that the receiver already had, as its acknowledgements show (DSACK, RFC 2883).
    """

    cpus: Optional[Mapping[int, CpuTimes]] = None
    pressure_s: Optional[float] = None
    segments_sent: Optional[int] = None
    segments_resent: Optional[int] = None
    segments_duplicate: Optional[int] = None
    listen_overflows: Optional[int] = None
    listen_drops: Optional[int] = None
    swapped_pages: Optional[int] = None
    throttle_count: Optional[int] = None
    quota_periods: Optional[int] = None
    octets_out: Optional[int] = None
    octets_in: Optional[int] = None
    energy: Optional[Mapping[str, Energy]] = None


class CurrentState(NamedTuple):
    """The current state of a host; None for facts that the system does not report.

    `run_queue` excludes the calling process.
    """

    run_queue: Optional[int] = None
    on_battery: Optional[bool] = None
    boot_id: Optional[str] = None


class Throttling(NamedTuple):
    """Signs that the CPUs are slowed down; None for signs that the system does not report.

    `clock_limit_mhz`: the lowest allowed clock of a CPU. `cooling_state`: the highest state of a
    cooling device of the CPUs, or the number of flags of a Raspberry Pi; 0 = not slowed down.
    """

    clock_limit_mhz: Optional[float] = None
    cooling_state: Optional[int] = None


class Consumer(NamedTuple):
    """A process and its CPU time so far, including the children that it waited for.

    `cpu`: the number of the CPU that it ran on last.
    """

    name: str
    parent: int
    cpu_s: float
    cpu: int
