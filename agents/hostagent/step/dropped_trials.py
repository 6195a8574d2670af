"""The dropped trials of a step: their ids, in a file next to the plan.

The orchestrator writes the file again for each new drop; see protocol.py.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Optional

from ..errors import TrialFailed
from ..paths import StepDir

#: Reading the file more often could disturb a measured load.
PERIOD_S = 1.0


class DroppedTrials:
    """`check` ends the current trial if it was dropped."""

    def __init__(self, step: StepDir) -> None:
        self._path = step.dropped
        self._trial: Optional[str] = None
        self._next = 0.0

    def begin(self, trial: Optional[str]) -> None:
        """Set the current trial; None: there is none, and `check` ends nothing."""
        self._trial = trial

    def has(self, trial: str) -> bool:
        return trial in read(self._path)

    def check(self) -> None:
        """Raise TrialFailed("cancelled") once: the cleanup of the trial must not be interrupted."""
        now = time.monotonic()
        if self._trial is None or now < self._next:
            return
        self._next = now + PERIOD_S
        if self.has(self._trial):
            self._trial = None
            raise TrialFailed("cancelled", "the trial was cancelled")


def read(path: Path) -> frozenset[str]:
    """Return the ids in the file; none if it is missing, or while a new one replaces it."""
    try:
        return frozenset(json.loads(path.read_bytes()))
    except OSError:
        return frozenset()
