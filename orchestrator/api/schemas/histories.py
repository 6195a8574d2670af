"""One metric of one case on one host along the commits."""

from datetime import datetime

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, CommitOut, case_out, commit_out
from orchestrator.api.schemas.hosts import ChangedFactOut, changed_out
from orchestrator.results.reports import History, HistoryPoint


class PointOut(Schema):
    """The geometric mean of a commit's trials with its 95 % confidence interval."""

    commit: CommitOut
    committed_at: datetime
    value: float
    interval: tuple[float, float] | None
    trials: int


class HistoryChangeOut(Schema):
    """The host changed between trials of the point `before_commit` and of the point before it."""

    before_commit: str
    at: datetime
    changed: list[ChangedFactOut]


class HistoryOut(Schema):
    """`points` are in the order of the commits, oldest first. `changes` are those of the host:
    numbers from both sides of one are not those of the same machine."""

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
    )


def _point_out(point: HistoryPoint) -> PointOut:
    return PointOut(
        commit=commit_out(point.commit),
        committed_at=point.commit.committed_at,
        value=point.value,
        interval=point.interval,
        trials=point.trials,
    )
