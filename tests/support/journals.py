"""The journals that supervisors left below a work directory."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StepJournal:
    """One step of a job according to a host, without the half line of a killed writer."""

    job: str
    step: str
    events: tuple[dict[str, Any], ...]

    def trials(self, event: str) -> list[str]:
        return [str(entry["trial"]) for entry in self.events if entry["event"] == event]

    @property
    def supervisor(self) -> int:
        """The supervisor's pid on its host."""
        (pid,) = [entry["pid"] for entry in self.events if entry["event"] == "supervisor_started"]
        return int(pid)

    @property
    def was_tuned(self) -> bool:
        return any(entry.get("applied") for entry in self.events if entry["event"] == "tuned")

    @property
    def began(self) -> float:
        return float(self.events[0]["t"])

    @property
    def ended(self) -> float:
        """The time of the last event; for a killed supervisor, a little before its end."""
        return float(self.events[-1]["t"])


def read_journals(work_dir: Path) -> list[StepJournal]:
    """Return all journals with at least one event, by the time of their first."""
    journals = [_read(path) for path in work_dir.glob("jobs/*/*/journal.jsonl")]
    return sorted((step for step in journals if step.events), key=lambda step: step.began)


def overlaps(steps: Iterable[StepJournal]) -> list[str]:
    """Return the steps of one host that overlapped in time; the list should be empty."""
    in_order = sorted(steps, key=lambda step: step.began)
    return [
        f"{later.job}/{later.step} began {earlier.ended - later.began:.3f} s before the end of "
        f"{earlier.job}/{earlier.step}"
        for earlier, later in pairwise(in_order)
        if later.began < earlier.ended
    ]


def _read(path: Path) -> StepJournal:
    lines = path.read_bytes().split(b"\n")[:-1]
    events = tuple(json.loads(line) for line in lines)
    return StepJournal(job=path.parts[-3], step=path.parts[-2], events=events)
