"""Progress of a run: a rewritten line on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, TextIO

from devstack.demo_client import Client

BAR = 24
QUIET_EVERY_S = 5.0
ENDED = ("finished", "failed", "cancelled")


class ProgressLine:
    def __init__(self, out: TextIO = sys.stdout) -> None:
        self.out = out
        self.live = out.isatty()
        self._last_phase = ""
        self._last_at = 0.0

    def show(self, run: dict[str, Any]) -> None:
        """Draw a run in the form of GET /api/v1/runs/{id}."""
        text = describe(run)
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{text[:width]}")
        elif self._is_due(str(run.get("phase"))):
            self._write(f"{text}\n")

    def end(self) -> None:
        if self.live:
            self._write("\n")

    def _is_due(self, phase: str) -> bool:
        now = time.monotonic()
        if phase == self._last_phase and now - self._last_at < QUIET_EVERY_S:
            return False
        self._last_phase, self._last_at = phase, now
        return True

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


def follow(client: Client, run: dict[str, Any], *, poll_s: float) -> dict[str, Any]:
    """Show the progress of a run every `poll_s` seconds until it ends. Return the ended run."""
    line = ProgressLine()
    try:
        while run["state"] not in ENDED:
            line.show(run)
            time.sleep(poll_s)
            run = client.get(f"/api/v1/runs/{run['id']}")
        line.show(run)
    finally:
        line.end()
    return run


def describe(run: dict[str, Any]) -> str:
    """Return one line: bar, trials, time left, phase and current measurement."""
    total, done = run.get("trials_total") or 0, run.get("trials_done") or 0
    full = BAR * done // total if total else 0
    parts = [f"[{'#' * full}{'.' * (BAR - full)}]", f"trial {done} of {total}"]
    left = run.get("seconds_left")
    if left is not None:
        parts.append(f"about {left:.0f} s left")
    parts.append(str(run.get("phase") or run.get("state")))
    return "  ".join([*parts, *current(run)])


def current(run: dict[str, Any]) -> list[str]:
    trials = [job.get("current_trial") for job in run.get("jobs", [])]
    return [f"{trial['case']} at {trial['commit'][:7]}" for trial in trials if trial][:1]
