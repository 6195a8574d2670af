"""This system's module: linux.py, macos.py or windows.py. Each offers the same functions.

    snapshot() -> {pid: Process}       the process table
    of_tree(pids) -> Usage | None      what those of them that live used so far
    UNKNOWN = {field of Usage: why}    what this system, or not every user of it, can be told
    marked("NAME=value") -> {pid}      processes with that in their environment, where one can ask
    stolen_s() -> s | None             what a hypervisor took from us
    temperature_c(), clock_mhz()       of the CPU, now; None where they cannot be read
    temperatures() -> {sensor: °C}
    facts() -> {name: value}           what facts.py does not know by itself; None = not told

The processes themselves are started and ended by posix.py or windows_child.py (see processes.py).
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from . import windows as _this
elif sys.platform == "darwin":
    from . import macos as _this
else:
    from . import linux as _this

UNKNOWN = _this.UNKNOWN
clock_mhz = _this.clock_mhz
facts = _this.facts
marked = _this.marked
of_tree = _this.of_tree
snapshot = _this.snapshot
stolen_s = _this.stolen_s
temperature_c = _this.temperature_c
temperatures = _this.temperatures
