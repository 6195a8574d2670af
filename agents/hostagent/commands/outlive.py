"""The commands `begin-outliving` and `end-outliving`: does a process outlive its connection?

A supervisor has to. Some systems end all processes of a login when its last connection ends.
"""

from __future__ import annotations

import os
import signal
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from .. import lock
from ..errors import AgentError
from ..platform.descriptors import close_others

#: Held by the process of the test.
LOCK = "outlive.lock"
#: Removed by `end-outliving`.
SIGN = "outlive"
#: The process ends by itself after this time.
LIMIT_S = 60.0


def begin(root: Path, _options: Namespace) -> dict[str, Any]:
    """Start a process that is detached as a supervisor is: {"pid": its pid}, or null on Windows."""
    if not hasattr(os, "fork"):
        return {"pid": None}
    held = lock.take(root / LOCK, patience_s=lock.PATIENCE_S)
    if held is None:
        raise AgentError("another check-up runs on this host; repeat this one after it")
    (root / SIGN).touch()
    pid = os.fork()
    if pid == 0:
        _outlive(root, held)
    os.close(held)
    return {"pid": pid}


def _outlive(root: Path, held: int) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        close_others({held})
        deadline = time.monotonic() + LIMIT_S
        while (root / SIGN).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        os._exit(0)


def end(root: Path, _options: Namespace) -> dict[str, Any]:
    """End that process: {"alive": whether it had outlived the connection that started it}."""
    alive = lock.is_held(root / LOCK)
    (root / SIGN).unlink(missing_ok=True)
    return {"alive": alive}
