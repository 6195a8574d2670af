"""Start a supervisor as a separate program, for systems without fork (Windows; experimental)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional

from ...paths import StepDir
from ...step.supervisor_pid import read_pid

START_TIMEOUT_S = 20.0
#: DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP, and CREATE_BREAKAWAY_FROM_JOB: an SSH server may
#: keep its sessions in job objects, which end with the connection. Some forbid the breakaway.
_DETACHED, _FREE = 0x8 | 0x200, 0x01000000


def start_supervisor(step: StepDir) -> Optional[int]:
    """Start `supervise` for the step, which takes the locks itself; return its pid.

    None if it does not start; supervisor.log contains the reason.
    """
    program = str(Path(sys.argv[0]).resolve())
    arguments = ["--root", str(step.root), "supervise", step.job, step.step]
    with open(step.log, "ab") as log:
        process = _start_detached([sys.executable, program, *arguments], step, log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and not step.pid_file.exists():
        if time.monotonic() > deadline:
            process.kill()
            return None
        time.sleep(0.01)
    process.returncode = 0  # nothing here waits for it
    # If two start at the same time, one gets the locks, and the other ends immediately.
    return read_pid(step).pid if step.pid_file.exists() else None


def _start_detached(argv: list[str], step: StepDir, log: Any) -> subprocess.Popen[bytes]:
    streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    if os.name != "nt":
        return subprocess.Popen(argv, cwd=step.root, start_new_session=True, **streams)
    with contextlib.suppress(PermissionError):
        return subprocess.Popen(argv, cwd=step.root, creationflags=_DETACHED | _FREE, **streams)
    return subprocess.Popen(argv, cwd=step.root, creationflags=_DETACHED, **streams)
