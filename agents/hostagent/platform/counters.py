"""What a machine counts from its start on, whatever its system; see system.py."""

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
    "quota_periods",
    "clock_step_s",
    "octets_out",
    "octets_in",
    "energy_j",
)


class Times(NamedTuple):
    """Seconds of one CPU. Idle includes waiting for storage; what is left of the time was work."""

    idle_s: float
    interrupts_s: float
    stolen_s: float


class Energy(NamedTuple):
    """Joules of one package; the count begins anew at `wraps_at_j`."""

    joules: float
    wraps_at_j: float


class Counters(NamedTuple):
    """None for what the system does not tell.

    `pressure_s`: time in which something waited for a CPU. `quota_periods`: periods in which a CPU
    quota that was set on us, and not by us on a child, was used up.
    """

    cpus: Optional[Mapping[int, Times]] = None
    pressure_s: Optional[float] = None
    segments_sent: Optional[int] = None
    segments_resent: Optional[int] = None
    listen_overflows: Optional[int] = None
    listen_drops: Optional[int] = None
    swapped_pages: Optional[int] = None
    throttle_count: Optional[int] = None
    quota_periods: Optional[int] = None
    octets_out: Optional[int] = None
    octets_in: Optional[int] = None
    energy: Optional[Mapping[str, Energy]] = None


class Standing(NamedTuple):
    """What is so at this moment; None for what the system does not tell.

    `run_queue` leaves out the asking process.
    """

    run_queue: Optional[int] = None
    on_battery: Optional[bool] = None
    boot_id: Optional[str] = None


class Consumer(NamedTuple):
    """A process and the CPU that it used so far, its waited-for children included.

    `cpu`: the number of the one that it ran on last.
    """

    name: str
    parent: int
    cpu_s: float
    cpu: int
