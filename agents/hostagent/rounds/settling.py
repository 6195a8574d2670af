"""After builds a host settles, so that they do not disturb the first trial.

A build leaves changed pages that the kernel still writes to the disk, and hot CPUs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Optional

from ..builds.build_steps import Heartbeat
from ..platform import system
from ..platform.processes import await_helper, fork_helper
from ..step.journal import Journal

#: Shorter builds leave nothing to wait for.
SHORTEST_S = 1.0
#: A host settles for as long as the builds took, and no longer than this.
MOST_S = 60.0
DIRTY_BYTES = 32 * 2**20
#: The CPU may be hotter than before the builds by this.
WARMER_C = 3.0
_PAUSE_S = 0.1


class RestState(NamedTuple):
    """`dirty_bytes`: pages that are not on the disk yet. None for what the system does not show."""

    dirty_bytes: Optional[int]
    temperature_c: Optional[float]


def read_rest_state(system_root: Path = Path("/")) -> RestState:
    return RestState(_read_dirty_bytes(system_root), system.read_temperature_c())


def _read_dirty_bytes(system_root: Path) -> Optional[int]:
    try:
        lines = (system_root / "proc/meminfo").read_text("ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return 1024 * sum(int(fields[name].split()[0]) for name in ("Dirty", "Writeback"))
    except (OSError, ValueError, KeyError):
        return None


def describe_unrest(before: RestState, now: RestState) -> str:
    """Return what has not settled; "" if nothing is left."""
    reasons = []
    if now.dirty_bytes is not None and now.dirty_bytes > max(DIRTY_BYTES, before.dirty_bytes or 0):
        reasons.append(f"{now.dirty_bytes / 2**20:.0f} MiB are not on the disk yet")
    if None not in (before.temperature_c, now.temperature_c):
        warmer = (now.temperature_c or 0.0) - (before.temperature_c or 0.0)
        if warmer > WARMER_C:
            reasons.append(f"the CPU is {warmer:.0f} °C warmer than before the builds")
    return "; ".join(reasons)


def settle(before: RestState, built_s: float, journal: Journal, heartbeat: Heartbeat) -> None:
    """Wait until the host has settled after builds that took `built_s`; journal how it went."""
    if built_s < SHORTEST_S:
        return
    began = time.monotonic()
    limit_s = min(MOST_S, built_s)
    unrest = describe_unrest(before, read_rest_state())
    if unrest:
        journal.append("phase", trial=None, phase="settling after the builds", quiet_s=0.0)
    # Not in this process: the call takes as long as the disk wants.
    writer = fork_helper(os.sync, ()) if unrest and hasattr(os, "fork") else None
    while unrest and time.monotonic() - began < limit_s:
        heartbeat()
        if writer is not None and await_helper(writer, _PAUSE_S):
            writer = None
        time.sleep(_PAUSE_S)
        unrest = describe_unrest(before, read_rest_state())
    seconds = round(time.monotonic() - began, 3)
    journal.append("settled", seconds=seconds, left=unrest)
