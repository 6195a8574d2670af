"""What the selectors of results answer with: comparisons and histories, ready to be shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.results.doubts import Doubt
from orchestrator.results.epochs import Epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of one case: contender against baseline. Values in the metric's own unit.

    `change` is contender / baseline - 1, `interval` its 95 % confidence interval; both are None
    where too few blocks are at hand. `verdict` is one of improved, regressed, trivial,
    equivalent, inconclusive.
    """

    key: str
    title: str
    unit: str
    better: str
    primary: bool
    margin: float
    baseline: float | None
    contender: float | None
    change: float | None
    interval: tuple[float, float] | None
    blocks: int
    p_value: float | None
    needed_blocks: int | None
    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency in seconds at `percentiles` (0 to 100), of all valid trials merged."""

    percentiles: tuple[float, ...]
    seconds: tuple[float | None, ...]
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """One case on one host. `voided_blocks` were left out; `suspect_blocks` count.

    `doubts` are the reasons of the trials in both.
    """

    case: Case
    host: Host
    verdict: str
    metrics: tuple[MetricComparison, ...]
    baseline_latency: LatencyCurve | None
    contender_latency: LatencyCurve | None
    voided_blocks: int
    suspect_blocks: int
    doubts: tuple[Doubt, ...]
    open_loop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """Two commits of a benchmark. `notes` are what a reader must know before believing it."""

    benchmark: Benchmark
    baseline: Commit
    contender: Commit
    verdict: str
    summary: str
    cases: tuple[CaseComparison, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The valid trials of one commit: geometric mean, its 95 % interval, number of trials.

    `suspect` of them are; `left_out` are invalid and not among them. `doubts` are the reasons of
    both.
    """

    commit: Commit
    value: float
    interval: tuple[float, float] | None
    trials: int
    suspect: int
    left_out: int
    doubts: tuple[Doubt, ...]
    epochs: Epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """The host changed between trials of point `before` - 1 and of point `before`.

    `changed`: fact → [before, after].
    """

    before: int
    at: datetime
    changed: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One metric of one case on one host along the commits, oldest first.

    `left_out` trials are invalid. `label` is what has to stand beside a latency, None for others.
    """

    benchmark: Benchmark
    case: Case
    host: Host
    key: str
    title: str
    unit: str
    better: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...]
    left_out: int
    label: str | None
