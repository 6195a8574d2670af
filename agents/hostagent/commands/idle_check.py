"""The command `idle-check`: how much other processes use this host while the agent is idle."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..monitoring.environment import InterferenceMonitor

DURATION_S = 2.0


def check_idle(_root: Path, _options: Namespace) -> dict[str, Any]:
    """Return {"interference": INTERFERENCE of protocol.py}, measured for DURATION_S."""
    monitor = InterferenceMonitor()
    end = time.monotonic() + DURATION_S
    while time.monotonic() < end:
        monitor.sample()
        time.sleep(0.5)
    return {"interference": monitor.end(0.0, ())}
