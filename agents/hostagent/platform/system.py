"""The module of this system: linux/linux_system.py, experimental/macos.py, experimental/windows.py.

Each offers the same functions:

    read_process_table() -> {pid: Process}
    read_usages(pids) -> {pid: Usage}        the usage so far of each that is alive
    UNKNOWN = {field of Usage: reason}       the fields that can be unknown on this system
    find_marked("NAME=value") -> {pid}       processes with that in their environment, if readable
    read_stolen_s() -> s | None              the time that a hypervisor took
    read_temperature_c(), read_clock_mhz(cpus)    of the CPU, now; None if they cannot be read
    read_temperatures() -> {sensor: °C}
    read_throttling(cpus) -> Throttling      signs that the CPUs are slowed down, now
    read_held_clock_mhz() -> MHz | None      the base clock, if the governor selects no lower one
    read_topology() -> Topology | None       its cores, and the CPUs that the agent may use
    read_facts() -> {name: value}            the facts that differ by system; None = unknown

    read_counters(cpus) -> Counters          those of the machine since its start (counters.py)
    read_current_state() -> CurrentState     the current state of the machine
    read_consumers() -> {pid: Consumer}      the CPU time of all processes so far; None if unknown
    read_newest_pid() -> pid | None          the last assigned one; None if unknown
    count_established(port) -> n | None      TCP connections to a port of this host
    count_local_ports() -> n | None          local ports that the kernel chooses for connections
    are_ports_exhausted() -> bool | None     no further connection to some address is possible
    explain_unknown() -> {fact: reason}      why a fact of monitoring/environment.py can be unknown

processes.py starts and stops child processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Optional

from .usage import Usage, sum_usages

if sys.platform == "win32":
    from .experimental import windows as _implementation
elif sys.platform == "darwin":
    from .experimental import macos as _implementation
else:
    from .linux import linux_system as _implementation

UNKNOWN = _implementation.UNKNOWN
are_ports_exhausted = _implementation.are_ports_exhausted
count_established = _implementation.count_established
count_local_ports = _implementation.count_local_ports
explain_unknown = _implementation.explain_unknown
find_marked = _implementation.find_marked
read_clock_mhz = _implementation.read_clock_mhz
read_consumers = _implementation.read_consumers
read_counters = _implementation.read_counters
read_current_state = _implementation.read_current_state
read_facts = _implementation.read_facts
read_held_clock_mhz = _implementation.read_held_clock_mhz
read_newest_pid = _implementation.read_newest_pid
read_process_table = _implementation.read_process_table
read_stolen_s = _implementation.read_stolen_s
read_temperature_c = _implementation.read_temperature_c
read_temperatures = _implementation.read_temperatures
read_throttling = _implementation.read_throttling
read_topology = _implementation.read_topology
read_usages = _implementation.read_usages


def read_tree_usage(pids: Iterable[int]) -> Optional[Usage]:
    """Return the common usage so far of the living processes of `pids`; None if none is alive."""
    return sum_usages(list(read_usages(pids).values()))
