"""The module of this system: linux/linux_system.py, experimental/macos.py, experimental/windows.py.

Each offers the same functions:

    snapshot() -> {pid: Process}       the process table
    of_tree(pids) -> Usage | None      what those of them that live used so far
    UNKNOWN = {field of Usage: why}    what this system, or not every user of it, can be told
    marked("NAME=value") -> {pid}      processes with that in their environment, where one can ask
    stolen_s() -> s | None             what a hypervisor took from us
    temperature_c(), clock_mhz(cpus)   of the CPU, now; None where they cannot be read
    temperatures() -> {sensor: °C}
    facts() -> {name: value}           what facts.py does not know by itself; None = not told

    counters(cpus) -> Counters         what the machine counts from its start on (counters.py)
    standing() -> Standing             what is so at this moment
    consumers() -> {pid: Consumer}     who used how much CPU so far; None where it is not told
    newest_pid() -> pid | None         given out last; None where that is not told
    established(port) -> n | None      TCP connections to a port of this host
    ports_exhausted() -> bool | None   whether to some address no further connection can be made
    why_unknown() -> {fact: why}       why this system may not tell a fact of
                                       monitoring/environment.py

The processes themselves are started and ended by processes.py.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from .experimental import windows as _this
elif sys.platform == "darwin":
    from .experimental import macos as _this
else:
    from .linux import linux_system as _this

UNKNOWN = _this.UNKNOWN
clock_mhz = _this.clock_mhz
consumers = _this.consumers
counters = _this.counters
established = _this.established
facts = _this.facts
marked = _this.marked
newest_pid = _this.newest_pid
of_tree = _this.of_tree
ports_exhausted = _this.ports_exhausted
snapshot = _this.snapshot
standing = _this.standing
stolen_s = _this.stolen_s
temperature_c = _this.temperature_c
temperatures = _this.temperatures
why_unknown = _this.why_unknown
