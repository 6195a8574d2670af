"""One metric of one case on one host along the commits."""

from datetime import datetime
from uuid import UUID

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, CommitOut, build_case_out, build_commit_out
from orchestrator.api.schemas.comparisons import ValidityIssueOut, build_validity_issues_out
from orchestrator.api.schemas.hosts import ChangedFactOut, build_changed_out
from orchestrator.histories.marked_changes import Shift
from orchestrator.histories.reports import History, HistoryPoint


class ShiftOut(Schema):
    """At this point the level of the series changes by `change` (a share) with its 95 % interval.
    `kind`: alert or candidate; `state`: open, confirming, confirmed, small, refuted or dismissed;
    `confirmed_change`: the result of the confirmation run."""

    id: UUID
    kind: str
    state: str
    change: float
    interval: tuple[float, float]
    regressed: bool
    confirmed_change: float | None


class PointAnnotationOut(Schema):
    """An annotation at the commit of the point, or at an unmeasured commit before it.

    `scope`: series, case, benchmark or project.
    """

    id: UUID
    commit: str
    text: str
    author: str | None
    created_at: datetime
    scope: str


class AnnotationAtOut(PointAnnotationOut):
    """An annotation of the point at the index `at`."""

    at: int


class PointOut(Schema):
    """The geometric mean of the means of a commit's runs, with its 95 % confidence interval.

    The interval is null with fewer than 3 `runs`, because the noise between runs is not known.
    Results without a known run count as one run. `suspect` of the `trials` are suspect; `excluded`
    more are invalid. `validity_issues` are the reasons of both. `at` is when the newest of them was
    measured. Points of another `epoch` of the host or another `configuration` are not comparable.
    `shift` is set if the level changes, `baseline` if a new baseline starts (with the reason).
    """

    commit: CommitOut
    committed_at: datetime
    at: datetime
    value: float
    interval: tuple[float, float] | None
    trials: int
    runs: int
    suspect: int
    excluded: int
    validity_issues: list[ValidityIssueOut]
    epoch: int
    configuration: int
    outlier: bool
    shift: ShiftOut | None
    baseline: str | None
    annotations: list[PointAnnotationOut]


class HistoryChangeOut(Schema):
    """The host changed between the trials of the point `before_commit` and of the previous
    point."""

    before_commit: str
    at: datetime
    changed: list[ChangedFactOut]


class HistoryBreakOut(Schema):
    """The point `before_commit` is not comparable with the previous point, because of another
    machine (`host`) or another configuration (`definition`). If commits were measured at least 5
    times on both sides, they show that this alone multiplied the values by `bridge`."""

    before_commit: str
    host: bool
    definition: bool
    bridge: float | None


class HistoryOut(Schema):
    """`points` are in the order of the commits, oldest first: those of all `total` from index
    `first` on. `changes` are those of the host: values before and after one are from different
    machines. `excluded` trials of the series are invalid. `unstable`: there are too many changes to
    report any. Always show `label` next to a latency."""

    benchmark: str
    project: str
    case: CaseOut
    host: str
    branch: str
    metric: str
    title: str
    unit: str
    better: str
    points: list[PointOut]
    first: int
    total: int
    changes: list[HistoryChangeOut]
    breaks: list[HistoryBreakOut]
    excluded: int
    unstable: bool
    label: str | None


class SeriesOut(Schema):
    id: int | None
    benchmark: str
    project: str
    case: str
    label: str
    host: str
    branch: str
    metric: str
    title: str
    unit: str
    better: str


class ColumnsOut(Schema):
    """A list per property with an entry per point; a single value if all entries are equal.

    `at`, `position` and `day`: the first entry is a value, each other is the difference to the
    previous one. `half_width`: ln(high / value) = ln(value / low) of the 95 % interval, in units of
    0.0001; null without one. `value` has six significant digits; null if no trial is valid.
    `configuration` numbers the measured configurations.
    """

    at: list[int] | int
    value: list[float | None]
    half_width: list[int | None] | int
    trials: list[int] | int
    suspect: list[int] | int
    invalid: list[int] | int
    epoch: list[int] | int
    configuration: list[int] | int


class PointColumnsOut(ColumnsOut):
    """`commit`: the first eight digits of the hash; `day`: its date, in days since 1970."""

    commit: list[str]
    position: list[int]
    day: list[int]


class OtherColumnsOut(ColumnsOut):
    """Points of the same commits with other epochs and configurations; `point`: the index of the
    point."""

    point: list[int] | int


class BreakAtOut(Schema):
    """An entry of `breaks` in the long form; `before` is an index, `host` the facts that
    changed."""

    before: int
    host: list[str] | None
    definition: bool
    bridge: float | None


class HistoryColumnsOut(Schema):
    """The compact form: `merges`, `side` (commits of merged branches), `outliers` and `baseline`
    are indices of points; `changes` are as `shift` of the long form, at the index `at`."""

    series: SeriesOut
    points: PointColumnsOut
    others: OtherColumnsOut
    merges: list[int]
    side: list[int]
    breaks: list[BreakAtOut]
    changes: list[dict[str, str | int | float | bool | None]]
    outliers: list[int]
    unstable: bool
    baseline: int | None
    annotations: list[AnnotationAtOut]


def build_history_out(history: History) -> HistoryOut:
    return HistoryOut(
        benchmark=history.benchmark.slug,
        project=history.benchmark.project.slug,
        case=build_case_out(history.case),
        host=history.host.name,
        branch=history.branch,
        metric=history.key,
        title=history.title,
        unit=history.unit,
        better=history.better,
        points=[_build_point_out(point) for point in history.points],
        first=history.first,
        total=history.total,
        changes=[
            HistoryChangeOut(
                before_commit=history.points[change.before].commit.sha,
                at=change.at,
                changed=build_changed_out(change.changed),
            )
            for change in history.changes
        ],
        breaks=[
            HistoryBreakOut(
                before_commit=history.points[each.before].commit.sha,
                host=each.host,
                definition=each.definition,
                bridge=each.bridge,
            )
            for each in history.breaks
        ],
        excluded=history.excluded,
        unstable=history.unstable,
        label=history.label,
    )


def _build_point_out(point: HistoryPoint) -> PointOut:
    return PointOut(
        commit=build_commit_out(point.commit),
        committed_at=point.commit.committed_at,
        at=point.at,
        value=point.value or 0.0,
        interval=point.interval,
        trials=point.trials,
        runs=point.runs,
        suspect=point.suspect,
        excluded=point.excluded,
        validity_issues=build_validity_issues_out(point.validity_issues),
        epoch=point.epoch,
        configuration=point.configuration,
        outlier=point.outlier,
        shift=_build_shift_out(point.shift) if point.shift else None,
        baseline=point.baseline,
        annotations=[
            PointAnnotationOut(
                id=each.id,
                commit=each.sha,
                text=each.text,
                author=each.author,
                created_at=each.created_at,
                scope=each.scope,
            )
            for each in point.annotations
        ],
    )


def _build_shift_out(shift: Shift) -> ShiftOut:
    return ShiftOut(
        id=shift.id,
        kind=shift.kind,
        state=shift.state,
        change=shift.change,
        interval=shift.interval,
        regressed=shift.regressed,
        confirmed_change=shift.confirmed_change,
    )
