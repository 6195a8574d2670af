"""The commands `stop` and `stop-all`, for living and killed supervisors."""

from __future__ import annotations

import os
import signal
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Optional

from .. import lock
from ..paths import StepDir, list_steps
from ..platform.orphans import kill_orphans
from ..platform.processes import kill_marked

STOP_TIMEOUT_S = 20.0


def stop(root: Path, options: Namespace) -> dict[str, Any]:
    step = StepDir(root, options.job, options.step)
    ended = _end_supervisor(step)
    left = kill_marked(step.path)
    return {"stopped": ended or left}


def stop_all(root: Path, _options: Namespace) -> dict[str, Any]:
    ended = [step for step in list_steps(root) if _end_supervisor(step)]
    names = {str(step) for step in (*ended, *kill_orphans(root))}
    return {"stopped": sorted(names)}


def _end_supervisor(step: StepDir) -> bool:
    """Stop the supervisor and its processes; False if there was none."""
    pid = _find_living_pid(step)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while lock.is_held(step.lock) and time.monotonic() < deadline:
        time.sleep(0.02)
    if lock.is_held(step.lock):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows: either ends it at once
    return True


def _find_living_pid(step: StepDir) -> Optional[int]:
    if not lock.is_held(step.lock) or not step.pid_file.exists():
        return None
    return int(step.pid_file.read_text())
