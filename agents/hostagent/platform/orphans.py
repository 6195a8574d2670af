"""What supervisors that are no more left running: found by the mark in its environment."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .. import lock
from ..paths import StepDir, all_steps
from .process_table import HAS_PROC
from .processes import MARK, kill_marked


def end_leftovers(root: Path) -> list[StepDir]:
    """Kill what belongs to steps below `root` that have no living supervisor; these steps.

    Only where the system shows the environment of processes (Linux); elsewhere nothing.
    """
    left = _marked_below(root)
    found = []
    for step in all_steps(root) if left else ():
        if str(step.path) in left and not lock.is_held(step.lock):
            kill_marked(step.path)
            found.append(step)
    return found


def _marked_below(root: Path) -> set[str]:
    """The folders of all steps below `root` of which a process is left."""
    start = f"{MARK}={root}{os.sep}".encode()
    found = set()
    for name in os.listdir("/proc") if HAS_PROC else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for variable in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                if variable.startswith(start):
                    found.add(os.fsdecode(variable[len(MARK) + 1 :]))
    return found
