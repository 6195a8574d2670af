"""Trials of a step that nobody wants any more: their ids, in a file beside the plan.

The orchestrator writes the file anew whenever there are more; see protocol.py.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Optional

from ..errors import TrialFailed
from ..paths import StepDir

#: A measured load must not feel that somebody looks.
PERIOD_S = 1.0


class Dropped:
    """`check` ends the trial that is on, if it was dropped meanwhile."""

    def __init__(self, step: StepDir) -> None:
        self._path = step.dropped
        self._trial: Optional[str] = None
        self._next = 0.0

    def begin(self, trial: Optional[str]) -> None:
        """This trial is on from now; None: none is, and nothing is ended."""
        self._trial = trial

    def has(self, trial: str) -> bool:
        return trial in read(self._path)

    def check(self) -> None:
        """TrialFailed("cancelled"), once: what is then cleared away must not be ended again."""
        now = time.monotonic()
        if self._trial is None or now < self._next:
            return
        self._next = now + PERIOD_S
        if self.has(self._trial):
            self._trial = None
            raise TrialFailed("cancelled", "nobody wants it any more")


def read(path: Path) -> frozenset[str]:
    """The ids in the file; none where there is none, or while a new one takes its place."""
    try:
        return frozenset(json.loads(path.read_bytes()))
    except OSError:
        return frozenset()
