"""One metric of one case on one host along the commits."""

from datetime import datetime

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, CommitOut, case_out, commit_out
from orchestrator.api.schemas.comparisons import DoubtOut, doubts_out
from orchestrator.api.schemas.hosts import ChangedFactOut, changed_out
from orchestrator.results.reports import History, HistoryPoint


class PointOut(Schema):
    """The geometric mean of a commit's trials with its 95 % confidence interval.

    Of `trials`, so many are `suspect`; `left_out` more are invalid. `doubts` say why.
    """

    commit: CommitOut
    committed_at: datetime
    value: float
    interval: tuple[float, float] | None
    trials: int
    suspect: int
    left_out: int
    doubts: list[DoubtOut]


class HistoryChangeOut(Schema):
    """The host changed between trials of the point `before_commit` and of the point before it."""

    before_commit: str
    at: datetime
    changed: list[ChangedFactOut]


class HistoryOut(Schema):
    """`points` are in the order of the commits, oldest first. `changes` are those of the host:
    numbers from both sides of one are not those of the same machine. `left_out` trials of the
    series are invalid. `label` has to stand beside a latency."""

    benchmark: str
    project: str
    case: CaseOut
    host: str
    metric: str
    title: str
    unit: str
    better: str
    points: list[PointOut]
    changes: list[HistoryChangeOut]
    left_out: int
    label: str | None


def history_out(history: History) -> HistoryOut:
    return HistoryOut(
        benchmark=history.benchmark.slug,
        project=history.benchmark.project.slug,
        case=case_out(history.case),
        host=history.host.name,
        metric=history.key,
        title=history.title,
        unit=history.unit,
        better=history.better,
        points=[_point_out(point) for point in history.points],
        changes=[
            HistoryChangeOut(
                before_commit=history.points[change.before].commit.sha,
                at=change.at,
                changed=changed_out(change.changed),
            )
            for change in history.changes
        ],
        left_out=history.left_out,
        label=history.label,
    )


def _point_out(point: HistoryPoint) -> PointOut:
    return PointOut(
        commit=commit_out(point.commit),
        committed_at=point.commit.committed_at,
        value=point.value,
        interval=point.interval,
        trials=point.trials,
        suspect=point.suspect,
        left_out=point.left_out,
        doubts=doubts_out(point.doubts),
    )
