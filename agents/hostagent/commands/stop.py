"""The commands `stop` and `stop-all`, for living and killed supervisors."""

from __future__ import annotations

import json
import signal
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Optional

from .. import lock
from ..errors import Busy
from ..paths import StepDir, list_steps
from ..platform.orphans import kill_orphans
from ..platform.processes import describe_marked, describe_unkillable, kill_marked
from ..step.supervisor_pid import read_pid, send_signal

STOP_TIMEOUT_S = 20.0
#: How long a killed supervisor may exist, such as one that waits for a dead disk.
KILL_TIMEOUT_S = 5.0


def stop(root: Path, options: Namespace) -> dict[str, Any]:
    step = StepDir(root, options.job, options.step)
    ended = _end_supervisor(step)
    orphans = kill_marked(step.path)
    unkillable = (_describe_supervisor(step) if ended else "") or describe_marked(step.path)
    answer: dict[str, Any] = {"stopped": ended or orphans}
    return {**answer, "unkillable": unkillable} if unkillable else answer


def stop_all(root: Path, _options: Namespace) -> dict[str, Any]:
    ended = [step for step in list_steps(root) if _end_supervisor(step)]
    names = {str(step) for step in (*ended, *kill_orphans(root))}
    return {"stopped": sorted(names)}


def require_own_steps(root: Path, owner: str) -> None:
    """Raise Busy if a living supervisor below `root` works for another host of Pitwall.

    That host is of another installation or team, with the same login and work directory.
    """
    for step in list_steps(root):
        if lock.is_held(step.lock) and _read_owner(step) not in (None, owner):
            raise Busy(
                "another host of Pitwall uses this work directory now; this job waits for its "
                "end. Give each host a separate work directory"
            )


def _read_owner(step: StepDir) -> Optional[str]:
    """Return the host that the plan of a step was made for; None if it names none."""
    try:
        owner = json.loads(step.plan.read_text("utf-8")).get("owner")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return owner if isinstance(owner, str) else None


def _end_supervisor(step: StepDir) -> bool:
    """Stop the supervisor and its processes; False if there was none."""
    if not send_signal(step, signal.SIGTERM):
        return False
    if _await_end(step, STOP_TIMEOUT_S):
        return True
    # Windows: either ends it at once.
    send_signal(step, getattr(signal, "SIGKILL", signal.SIGTERM))
    _await_end(step, KILL_TIMEOUT_S)
    return True


def _await_end(step: StepDir, timeout_s: float) -> bool:
    """Wait for the end of the supervisor; False if it still exists."""
    deadline = time.monotonic() + timeout_s
    while lock.is_held(step.lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _describe_supervisor(step: StepDir) -> str:
    """Return that the killed supervisor still exists; "" if it has ended."""
    if not lock.is_held(step.lock):
        return ""
    return describe_unkillable("the agent", [read_pid(step).pid])
