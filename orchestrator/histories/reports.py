"""The data of a history for display."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cli.pitwall.units import format_percent
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.histories.marked_changes import PlacedAnnotation, Shift
from orchestrator.measurements.validity_issues import ValidityIssue


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The valid trials of one commit: geometric mean, its 95 % interval, number of trials.

    `suspect` of them are suspect; `excluded` are invalid and not included. `validity_issues` are
    the reasons of both. Without valid trials `value` is None. `before` is the commit of the
    previous point with valid trials. Points of another `epoch` of the host or of another
    `configuration` are not comparable; the commit has `others` more of these. `annotations` are
    those at this commit, or at an unmeasured one before it.
    """

    commit: Commit
    before: Commit | None
    at: datetime
    value: float | None
    interval: tuple[float, float] | None
    trials: int
    runs: int
    suspect: int
    excluded: int
    validity_issues: tuple[ValidityIssue, ...]
    epoch: int
    configuration: int
    others: int
    outlier: bool
    shift: Shift | None
    baseline: str | None
    annotations: tuple[PlacedAnnotation, ...]

    @property
    def half_width(self) -> str:
        """Return the half width of the interval, in per cent of the value; empty without an
        interval."""
        if self.interval is None or not self.value:
            return ""
        return format_percent(self.interval[1] / self.value - 1, decimals=1)


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
    """Point `before` is not comparable with the previous one.

    The cause is another machine (`host`) or another configuration (`definition`). `bridge` as in
    `lines.LineBreak`.
    """

    before: int
    host: bool
    definition: bool
    bridge: float | None

    @property
    def bridge_change(self) -> float | None:
        return None if self.bridge is None else self.bridge - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One metric of one case on one host along a branch, oldest first.

    `points` are those of all `total` from index `first` on; `series` is None if nothing was
    measured. `excluded` trials are invalid. `label` must be shown next to a latency; None for other
    metrics.
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
    excluded: int
    unstable: bool
    label: str | None
