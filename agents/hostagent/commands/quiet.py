"""The verb that tells how much else works on this host; see monitoring/environment.py."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..monitoring.environment import InterferenceMonitor

LOOK_S = 2.0


def quiet(_root: Path, _options: Namespace) -> dict[str, Any]:
    """{"quiet": AMBIENT_DURING} of a short look while nothing of ours works."""
    look = InterferenceMonitor()
    end = time.monotonic() + LOOK_S
    while time.monotonic() < end:
        look.sample()
        time.sleep(0.5)
    return {"quiet": look.end(0.0, ())}
