"""The comparison of two sides, as `comparisons.formats.to_dict` returns it."""

from collections.abc import Sequence
from urllib.parse import urlencode

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, CommitOut, build_web_url
from orchestrator.comparisons.reasons import ReasonCode
from orchestrator.comparisons.report import ComparisonReport, build_comparison_query
from orchestrator.measurements.validity_issues import ValidityIssue
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.saturated_blocks import Bound


class ReasonOut(Schema):
    """`metric`: the key of the metric concerned. `count`: of blocks, or of cases."""

    code: ReasonCode
    metric: str | None
    count: int | None
    text: str


class MissingOut(Schema):
    """What would probably decide the inconclusive cases: blocks of the case that needs the most,
    trials of all cases, and seconds of machine time (null if unknown)."""

    blocks: int
    trials: int
    seconds: float | None


class OrderEffectOut(Schema):
    """The change from the first to the second trial of a block, and its 95 % interval."""

    change: float
    interval: tuple[float, float]


class WithSaturatedOut(Schema):
    """The change over all blocks and its 95 % interval; `blocks` of them have a saturated trial.

    `bound`: the change is `at_least` or `at_most` this, because the values of saturated trials are
    bounds; `unknown` if trials of both sides are saturated.
    """

    change: float
    interval: tuple[float, float]
    bound: Bound
    blocks: int


class MetricOut(Schema):
    """`change` is contender / baseline - 1, `interval` its confidence interval.

    `confidence` is 0.95. It is higher for regressed and improved metrics, because they were
    selected for their large changes. 95 % of all intervals that claim a change are then true
    (Benjamini and Yekutieli 2005). `likely_change`, of these metrics alone, is without the
    exaggeration of the selection.

    `q_value`: the expected share of false changes among all metrics with a p-value as small as this
    one (Benjamini and Hochberg); primary metrics are one family of tests, the others another one.
    `needed_blocks`, of inconclusive primary metrics: the total that decides it with a probability
    of 80 %; null if no run has so many. `more_blocks_range`: from how many to how many further
    blocks it really needs, in at least 80 % of the cases; the second is null if no run has so many.
    `order_effect` is removed from `change`. If it could not be separated it is null, and
    `order_note` has the reason. `with_saturated` includes blocks that do not count because a trial
    is saturated; null without such blocks. It gives no verdict. `builds`: the number of different
    builds of baseline and contender, null if unknown; with 1 on a side, a difference between builds
    is not separated from a change of the code."""

    metric: str
    title: str
    unit: str
    better: str
    primary: bool
    margin: float
    baseline: float | None
    contender: float | None
    change: float | None
    likely_change: float | None
    interval: tuple[float, float] | None
    confidence: float
    blocks: int
    p_value: float | None
    q_value: float | None
    needed_blocks: int | None
    more_blocks_range: tuple[int, int | None] | None
    verdict: Verdict
    reasons: list[str]
    order_effect: OrderEffectOut | None
    order_note: str
    with_saturated: WithSaturatedOut | None
    builds: tuple[int, int] | None


class LatencyOut(Schema):
    """Seconds at each of `percentiles`; null at percentiles with too few requests beyond them."""

    percentiles: list[float]
    baseline: list[float | None]
    contender: list[float | None]


class QuantileOut(Schema):
    """The change at one percentile: `interval` bounds it alone, `band` all percentiles at once."""

    percentile: float
    baseline: float
    contender: float
    change: float
    interval: tuple[float, float] | None
    band: tuple[float, float] | None


class MismatchOut(Schema):
    """A difference of the sides other than the commit, and why it matters."""

    aspect: str
    baseline: str
    contender: str
    reason: str


class SideOut(Schema):
    """The parameters of one side; null does not filter."""

    commit: str
    case: str | None
    host: str | None
    profile: str | None
    tool: str | None
    version: int | None


class ValidityIssueOut(Schema):
    """A reason why trials are suspect or invalid; `trials`: how many of them have it."""

    code: str
    title: str
    trials: int


class CaseComparisonOut(Schema):
    """`excluded_blocks` do not count: a trial failed or is invalid. `suspect_blocks` do count, and
    contain a suspect trial; `verdict_without_suspect` is the verdict of the other blocks (null if
    no block is suspect). `baseline_failed` and `contender_failed`: the blocks in which the code
    of this side failed. `validity_issues` are the reasons (docs/validity.md).

    Not `paired`: the sides share no block, so the change contains the drift of the machine. With
    fewer than 3 runs on each side it is inconclusive; the reason `differs_not_confirmed` marks a
    difference. An inconclusive case probably needs `missing_blocks` more, in `missing_s` seconds;
    `missing` adds the number of trials. They are null if it needs more than a run may have.
    `missing_blocks_range` is the range of this estimate, as `more_blocks_range` of a metric.
    `latency` and `quantiles` are null in a comparison of more than 20 cases: request a single
    `case`."""

    case: CaseOut
    contender_case: CaseOut
    host: str
    contender_host: str
    paired: bool
    missing_blocks: int | None
    missing_blocks_range: tuple[int, int | None] | None
    missing_s: float | None
    missing: MissingOut | None
    verdict: Verdict
    reasons: list[ReasonOut]
    open_loop: bool
    excluded_blocks: int
    suspect_blocks: int
    verdict_without_suspect: Verdict | None
    baseline_failed: int
    contender_failed: int
    validity_issues: list[ValidityIssueOut]
    metrics: list[MetricOut]
    latency: LatencyOut | None
    quantiles: list[QuantileOut] | None


class SensitivityOut(Schema):
    """The verdicts without the `blocks` that contain a suspect trial: of the whole matrix, and the
    number of cases with each. `changed_cases` have another verdict than with these blocks."""

    blocks: int
    verdict: Verdict
    counts: dict[Verdict, int]
    changed_cases: int


class ComparisonOut(Schema):
    """`without_suspect` is null if no block contains a suspect trial. `verdict` is that of the
    whole matrix, `counts` the number of cases with each verdict; `notes` are its limits.
    `mismatches` are differences of the sides other than the commit. `tests` is the number of
    primary metrics; `changed` of them are improved or regressed if each is tested alone, `survived`
    of them also at a false discovery rate of 5 %."""

    benchmark: str
    project: str
    baseline: CommitOut
    contender: CommitOut
    sides: list[SideOut]
    paired: bool
    mismatches: list[MismatchOut]
    tests: int
    changed: int
    survived: int
    verdict: Verdict
    counts: dict[Verdict, int]
    without_suspect: SensitivityOut | None
    reasons: list[ReasonOut]
    missing: MissingOut | None
    summary: str
    notes: list[str]
    web_url: str
    cases: list[CaseComparisonOut]


def build_comparison_url(report: ComparisonReport, run: Run | None) -> str:
    """The address of the page with this report; `run`: the run that it is limited to."""
    return f"{build_web_url('compare')}?{urlencode(build_comparison_query(report, run))}"


def build_validity_issues_out(issues: Sequence[ValidityIssue]) -> list[ValidityIssueOut]:
    return [
        ValidityIssueOut(code=each.code, title=each.title, trials=each.trials) for each in issues
    ]
