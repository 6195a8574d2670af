"""What a history answers with, ready to be shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.histories.marked_changes import AnnotationMark, Shift
from orchestrator.measurements.validity_issues import ValidityIssue


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The valid trials of one commit: geometric mean, its 95 % interval, number of trials.

    `suspect` of them are; `left_out` are invalid and not among them. `validity_issues` are the
    reasons of both. Without valid trials `value` is None. `before` is the commit of the previous
    point that has valid trials. Points of another `epoch` of the
    host or of another `configuration` are not like for like; `others` more of the
    same commit are of other ones. `annotations`: what people wrote at this commit, or at one before
    it that was not measured.
    """

    commit: Commit
    before: Commit | None
    at: datetime
    value: float | None
    interval: tuple[float, float] | None
    trials: int
    suspect: int
    left_out: int
    validity_issues: tuple[ValidityIssue, ...]
    epoch: int
    configuration: int
    others: int
    outlier: bool
    shift: Shift | None
    baseline: str | None
    annotations: tuple[AnnotationMark, ...]

    @property
    def half_width(self) -> str:
        """How far the interval goes to either side, in per cent of the value; empty without."""
        if self.interval is None or not self.value:
            return ""
        return f"{(self.interval[1] / self.value - 1) * 100:.1f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """The host changed between point `before` - 1 and point `before`.

    `changed`: fact → [before, after].
    """

    before: int
    at: datetime
    changed: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBreak:
    """Point `before` is not like for like with the one before it: another machine (`host`),
    something else measured (`definition`). `bridge` as in `history_lines.Mark`."""

    before: int
    host: bool
    definition: bool
    bridge: float | None

    @property
    def bridge_change(self) -> float | None:
        return None if self.bridge is None else self.bridge - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One metric of one case on one host along a branch, oldest first: `points`, of all the
    `total` those from `first` on; the series is `series`, None where nothing was measured.

    `left_out` trials are invalid. `label` is what has to stand beside a latency, None for others.
    """

    series: int | None
    benchmark: Benchmark
    case: Case
    host: Host
    branch: str
    key: str
    title: str
    unit: str
    better: str
    points: tuple[HistoryPoint, ...]
    first: int
    total: int
    changes: tuple[HistoryChange, ...]
    breaks: tuple[HistoryBreak, ...]
    left_out: int
    unstable: bool
    label: str | None
