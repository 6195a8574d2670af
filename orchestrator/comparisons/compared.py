"""What a comparison answers with, ready to be shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.versions import DiffLine
from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.sides import Side
from orchestrator.loadtools.metrics import Metric
from orchestrator.measurements.validity_issues import ValidityIssue
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseName:
    """A case, by what is shown of it."""

    pk: int
    key: str
    label: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostName:
    """Hosts of one side: one of them, or those of a profile that were measured on."""

    pk: UUID
    name: str
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of one case: contender against baseline. Values in the metric's own unit.

    `change` is contender / baseline - 1, `interval` its 95 % confidence interval; both are None
    where too few blocks are at hand. `verdict` is one of improved, regressed, trivial,
    equivalent, inconclusive; `q_value`, of primary metrics, is the share of changes that are none
    among those that look as sure as this one. `blocks` are trials of the smaller side where the
    sides share no block.
    """

    info: Metric
    found: Outcome
    primary: bool
    verdict: str
    q_value: float | None

    @property
    def key(self) -> str:
        return self.info.key

    @property
    def title(self) -> str:
        return self.info.title

    @property
    def unit(self) -> str:
        return self.info.unit

    @property
    def better(self) -> str:
        return self.info.better

    @property
    def margin(self) -> float:
        return self.info.margin

    @property
    def baseline(self) -> float | None:
        return self.found.baseline

    @property
    def contender(self) -> float | None:
        return self.found.contender

    @property
    def change(self) -> float | None:
        return self.found.change

    @property
    def interval(self) -> tuple[float, float] | None:
        low, high = self.found.low, self.found.high
        return None if low is None or high is None else (low, high)

    @property
    def blocks(self) -> int:
        return self.found.blocks

    @property
    def p_value(self) -> float | None:
        return self.found.p_value

    @property
    def needed_blocks(self) -> int | None:
        return self.found.needed_blocks

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.found.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """One case on one host. `excluded_blocks` do not count; `suspect_blocks` do.

    `validity_issues` are the reasons of the trials in both. `contender_case` and `contender_host`
    differ from the baseline's only if the sides differ in them. Not `paired`: the sides share no
    block, so the machine itself may have changed. `missing_blocks` more would probably decide an
    inconclusive case, in `missing_s` seconds; None if the case is decided or the time is unknown.
    """

    case: CaseName
    contender_case: CaseName
    host: HostName
    contender_host: HostName
    verdict: str
    metrics: tuple[MetricComparison, ...]
    paired: bool
    excluded_blocks: int
    suspect_blocks: int
    validity_issues: tuple[ValidityIssue, ...]
    open_loop: bool
    cell: Cell | None = None
    missing_blocks: int | None = None
    missing_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Something in which the sides are not like for like. `diff`: of two definitions."""

    what: str
    baseline: str
    contender: str
    reason: str
    diff: tuple[DiffLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """Two sides of a benchmark. `notes` are what a reader must know before believing it.

    `changed` primary metrics look improved or regressed when looked at alone, `survived` still do
    with the false discovery rate of all `tests` held at 5 %. `mismatches` is empty if
    everything is like for like. `version` is that of the definition which says what counts.
    """

    benchmark: Benchmark
    sides: tuple[Side, Side]
    verdict: str
    summary: str
    cases: tuple[CaseComparison, ...]
    notes: tuple[str, ...]
    mismatches: tuple[Mismatch, ...]
    paired: bool
    tests: int
    changed: int
    survived: int
    open_loop: bool

    @property
    def baseline(self) -> Commit:
        return self.sides[0].commit

    @property
    def contender(self) -> Commit:
        return self.sides[1].commit


def address_of(report: ComparisonReport, run: Run | None = None) -> dict[str, str]:
    """The query that the page and the API take for this report; `run`, where it is limited to one.

    The contender's words are those in which it differs.
    """
    benchmark = report.benchmark
    baseline, contender = (side.words() for side in report.sides)
    query = {
        "benchmark": f"{benchmark.project.slug}/{benchmark.slug}",
        "baseline": baseline.pop("commit"),
        "contender": contender.pop("commit"),
        **baseline,
    }
    for name, value in contender.items():
        if baseline.get(name) != value:
            query[f"contender_{name}"] = value
    return query if run is None else {**query, "run": str(run.pk)}
