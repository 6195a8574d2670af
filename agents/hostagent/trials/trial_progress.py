"""The journal entries of a trial while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..step.journal import Journal
from ..step.plan import Trial
from .poll_pause import PollPause

#: A poll disturbs a host that is almost quiet, so a waiting trial is polled rarely.
WAITING_POLL_S = 3.0


class TrialProgress:
    """Appends the phases of one trial to the journal, each with the pause of the polls."""

    def __init__(self, trial: Trial, journal: Journal, pause: PollPause) -> None:
        self._trial = trial
        self._journal = journal
        self._pause = pause

    def begin(self) -> None:
        """The trial starts now, with all its hosts quiet."""
        self._pause.announce(self._trial, 0.0)

    def begin_loads(self) -> None:
        self._pause.begin_loads(self._trial)

    def report_phase(self, phase: str) -> None:
        quiet_s = self._pause.left_s()
        self._journal.append("phase", trial=self._trial.id, phase=phase, quiet_s=quiet_s)

    def report_prepared(self, step: int, each: str, seconds: float) -> None:
        """A prepare step has succeeded; `step`: its number from 1."""
        self._journal.append(
            "prepared", trial=self._trial.id, step=step, each=each, seconds=seconds
        )

    def report_busy_host(self, label: str, environment: Mapping[str, Any]) -> None:
        """The trial waits, because others use this host."""
        self._journal.append(
            "host_busy",
            trial=self._trial.id,
            host=label,
            busy_share=environment["busy_share"],
            foreign=environment["foreign"],
            quiet_s=WAITING_POLL_S,
        )
