"""The module of this system: linux/linux_system.py, experimental/macos.py, experimental/windows.py.

Each offers the same functions:

    snapshot() -> {pid: Process}           the process table
    tree_usage(pids) -> Usage | None       the usage of the living ones so far
    UNKNOWN = {field of Usage: reason}     the fields that can be unknown on this system
    find_marked("NAME=value") -> {pid}     processes with that in their environment, if readable
    stolen_s() -> s | None                 the time that a hypervisor took
    temperature_c(), clock_mhz(cpus)       of the CPU, now; None if they cannot be read
    temperatures() -> {sensor: °C}
    facts() -> {name: value}               the facts that differ by system; None = unknown

    counters(cpus) -> Counters             the counters of the machine since its start (counters.py)
    current_state() -> CurrentState        the current state of the machine
    consumers() -> {pid: Consumer}         the CPU time of all processes so far; None if unknown
    newest_pid() -> pid | None             the last assigned one; None if unknown
    established(port) -> n | None          TCP connections to a port of this host
    ports_exhausted() -> bool | None       whether no further connection to some address is possible
    unknown_reasons() -> {fact: reason}    why a fact of monitoring/environment.py can be unknown

processes.py starts and stops child processes.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from .experimental import windows as _implementation
elif sys.platform == "darwin":
    from .experimental import macos as _implementation
else:
    from .linux import linux_system as _implementation

UNKNOWN = _implementation.UNKNOWN
clock_mhz = _implementation.clock_mhz
consumers = _implementation.consumers
counters = _implementation.counters
established = _implementation.established
facts = _implementation.facts
find_marked = _implementation.find_marked
newest_pid = _implementation.newest_pid
tree_usage = _implementation.tree_usage
ports_exhausted = _implementation.ports_exhausted
snapshot = _implementation.snapshot
current_state = _implementation.current_state
stolen_s = _implementation.stolen_s
temperature_c = _implementation.temperature_c
temperatures = _implementation.temperatures
unknown_reasons = _implementation.unknown_reasons
