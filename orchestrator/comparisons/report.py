"""The result of a comparison: ComparisonReport, with its cases and their metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.versions import DiffLine
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.sides import Side
from orchestrator.loadtools.metrics import Metric
from orchestrator.measurements.validity_issues import ValidityIssue
from orchestrator.runs.models import Run
from orchestrator.stats.block_outcomes import BlockOutcomes
from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.conclusion import Withheld
from orchestrator.stats.needed_blocks import FurtherBlocks, NeededBlocks
from orchestrator.stats.saturated_blocks import SaturatedEstimate
from orchestrator.stats.unpaired import UNCONFIRMED

#: In the place of a verdict if nothing could be compared.
NO_DATA = "no usable data"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseName:
    """The id and the names of a case."""

    pk: int
    key: str
    label: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostName:
    """The host of one side; several measured hosts of a profile are joined in `name`."""

    pk: UUID
    name: str
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of one case: contender against baseline. Values in the metric's own unit.

    `change` is contender / baseline - 1, `interval` its confidence interval; both are None with too
    few blocks. Those of a regressed or improved metric are adjusted for its selection: the interval
    has a higher `confidence` than 95 %, and `likely_change` is corrected. `verdict` is one of
    improved, regressed, trivial, equivalent, inconclusive. `q_value`: the expected share of false
    changes among all metrics with a p-value as small as this one. Primary metrics are one family of
    tests, the others another one. If the sides share no block, `blocks` counts the trials of the
    smaller side. `needed`, of inconclusive primary metrics: the total blocks that would probably
    decide it; None if unknown. `with_saturated`: the change over all blocks, if a trial of some is
    saturated.
    """

    info: Metric
    result: Comparison
    primary: bool
    verdict: str
    q_value: float | None
    needed: NeededBlocks | None = None
    with_saturated: SaturatedEstimate | None = None

    @property
    def further(self) -> FurtherBlocks | None:
        """Return the blocks that would probably decide it, in addition to the present ones."""
        return None if self.needed is None else self.needed.count_further(self.blocks)

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
        return self.result.baseline

    @property
    def contender(self) -> float | None:
        return self.result.contender

    @property
    def change(self) -> float | None:
        return self.result.change

    @property
    def likely_change(self) -> float | None:
        """Return the change without the exaggeration of the selection; None if not claimed."""
        return self.result.likely_change

    @property
    def best_change(self) -> float | None:
        """Return the change to show alone: the likely one of a claim, else the measured one."""
        return self.change if self.likely_change is None else self.likely_change

    @property
    def interval(self) -> tuple[float, float] | None:
        low, high = self.result.low, self.result.high
        return None if low is None or high is None else (low, high)

    @property
    def blocks(self) -> int:
        return self.result.blocks

    @property
    def p_value(self) -> float | None:
        return self.result.p_value

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.result.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """One case on one host. `excluded_blocks` do not count; `suspect_blocks` do.

    `validity_issues` are the reasons of the trials in both. `contender_case` and `contender_host`
    differ from the baseline's only if the sides differ in them. Not `paired`: the sides share no
    block, so the machine itself may have changed. `missing` blocks would probably decide an
    inconclusive case, in `missing_s` seconds; None if the case is decided or they are unknown.
    `verdict_without_suspect`: that of the other blocks; None without suspect ones.
    `outcomes`: how the trials of both sides ended. `withheld`: why its values give no verdict, or
    prove no equivalence.
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
    source: PairedCase | None = None
    missing: FurtherBlocks | None = None
    verdict_without_suspect: Verdict | None = None
    missing_s: float | None = None
    outcomes: BlockOutcomes = field(default_factory=BlockOutcomes)
    withheld: Withheld | None = None

    @property
    def missing_blocks(self) -> int | None:
        """Return how many more blocks would probably decide it; None if no run has so many."""
        return None if self.missing is None else self.missing.in_reach

    @property
    def out_of_reach(self) -> bool:
        """Return whether the most blocks of a run would probably not decide it."""
        return self.missing is not None and self.missing.in_reach is None

    @property
    def has_data(self) -> bool:
        """Return whether anything could be compared: values, or a failure of one side."""
        values = any(each.blocks or each.change is not None for each in self.metrics)
        return values or self.outcomes.verdict is not None

    @property
    def is_unconfirmed(self) -> bool:
        """Return whether a primary metric differs, but too few runs measured it for a verdict."""
        return self.verdict == Verdict.INCONCLUSIVE and any(
            each.primary and each.result.unconfirmed for each in self.metrics
        )

    @property
    def outcome(self) -> str:
        """Return the verdict for people: without data nothing was compared, so none is shown."""
        if not self.has_data:
            return NO_DATA
        return UNCONFIRMED if self.is_unconfirmed else self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A difference of the sides other than the commit. `diff`: of two definitions."""

    aspect: str
    baseline: str
    contender: str
    reason: str
    diff: tuple[DiffLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The verdicts without the `blocks` that contain a suspect trial.

    `before` and `verdict`: of the whole comparison, with and without these blocks. `cases`: index
    of a case in the selection, as text → its verdict without them. `counts`: verdict → number of
    cases. `changed`: the number of cases with another verdict than before.
    """

    blocks: int
    before: Verdict
    verdict: Verdict
    cases: Mapping[str, Verdict]
    counts: Mapping[str, int]
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """Two sides of a benchmark. `notes` are limits that a reader must know.

    `counts`: verdict → number of cases, the worst first. `tests` is the number of primary metrics.
    `changed` of them are improved or regressed if each is tested alone, `survived` of them also at
    a false discovery rate of 5 %. Without `mismatches` the sides differ in the commit only.
    `unconfirmed`: the verdict is inconclusive, and the metric that the summary names differs
    between too few runs. `sensitivity`: the verdicts without the blocks with a suspect trial; None
    if there are none.
    """

    benchmark: Benchmark
    sides: tuple[Side, Side]
    verdict: str
    summary: str
    counts: Mapping[str, int]
    cases: tuple[CaseComparison, ...]
    notes: tuple[str, ...]
    mismatches: tuple[Mismatch, ...]
    paired: bool
    tests: int
    changed: int
    survived: int
    unconfirmed: bool = False
    sensitivity: Sensitivity | None = None

    @property
    def baseline(self) -> Commit:
        return self.sides[0].commit

    @property
    def contender(self) -> Commit:
        return self.sides[1].commit

    @property
    def has_data(self) -> bool:
        """Return whether anything could be compared."""
        return any(case.has_data for case in self.cases)

    @property
    def outcome(self) -> str:
        """Return the verdict for people, or that there is no usable data."""
        if not self.has_data:
            return NO_DATA
        return UNCONFIRMED if self.unconfirmed else self.verdict


def build_comparison_query(report: ComparisonReport, run: Run | None = None) -> dict[str, str]:
    """The parameters of the page and the API for this report.

    `run`: the run that the report is limited to. Parameters of the contender are those that differ
    from the baseline's.
    """
    benchmark = report.benchmark
    baseline, contender = (side.query() for side in report.sides)
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
