"""The orphans of dead supervisors: processes with MARK in their environment."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .. import lock
from ..paths import StepDir, list_steps
from .process_table import HAS_PROC
from .processes import MARK, kill_marked


def kill_orphans(root: Path) -> list[StepDir]:
    """Kill the processes of steps below `root` without a living supervisor; return these steps.

    It does nothing on systems that do not show the environment of processes (all but Linux).
    """
    left = _find_marked_steps(root)
    steps = []
    for step in list_steps(root) if left else ():
        if str(step.path) in left and not lock.is_held(step.lock):
            kill_marked(step.path)
            steps.append(step)
    return steps


def _find_marked_steps(root: Path) -> set[str]:
    """Return the folders of all steps below `root` with a living process."""
    start = f"{MARK}={root}{os.sep}".encode()
    steps = set()
    for name in os.listdir("/proc") if HAS_PROC else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for variable in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                if variable.startswith(start):
                    steps.add(os.fsdecode(variable[len(MARK) + 1 :]))
    return steps
