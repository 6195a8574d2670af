"""Change points and alerts."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from ninja import Schema
from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, model_validator

from orchestrator.alerts.models import Alert, AlertKind, AlertState
from orchestrator.alerts.selectors import load_bisections, load_broken_cases
from orchestrator.alerts.services import MAX_NOTE
from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    Flag,
    Text,
    Whole,
    build_case_out,
    build_commit_out,
    build_web_url,
)
from orchestrator.benchmarks.models import Project
from orchestrator.core.storable_text import StorableText
from orchestrator.regressions.bisection_answers import is_bad_answer, read_answers
from orchestrator.regressions.change_points import get_baseline_case
from orchestrator.results.models import Baseline, Bisection, BisectionState, ChangeKind, ChangeState


class RevisionOut(Schema):
    at: datetime
    text: str


class StepOut(Schema):
    """A commit measured against the last good one; `is_bad`: it has the change."""

    commit: str
    change: float
    blocks: int
    is_bad: bool
    run: UUID | None


class BisectionOut(Schema):
    """The search for the commit that caused a change, among `commits`, oldest first."""

    state: BisectionState
    message: str
    good: CommitOut
    commits: list[str]
    unbuildable: list[str]
    run: UUID | None
    steps: list[StepOut]


class ChangePointOut(Schema):
    """`commit` is the first of the new level, `before_commit` the last of the old one, among
    measured commits. `change` is after / before - 1 with its 95 % `interval`. `run` is the
    confirmation run that measured both again, and `confirmed_change` its result; without one
    `message` has the reason."""

    id: UUID
    benchmark: str
    project: str
    case: CaseOut
    host: str
    metric: str
    commit: CommitOut
    before_commit: CommitOut
    kind: ChangeKind
    change: float
    interval: tuple[float, float]
    p_value: float
    level_before: float
    level_after: float
    regressed: bool
    state: ChangeState
    seen: bool
    message: str
    run: UUID | None
    confirmed_change: float | None
    confirmed_interval: tuple[float, float] | None
    culprit: CommitOut | None
    found_at: datetime
    revisions: list[RevisionOut]


class ChangePointPage(Schema):
    change_points: list[ChangePointOut]
    next: str | None


class DoneOut(Schema):
    """`by` is empty for automatic actions."""

    at: datetime
    by: str
    text: str


class AlertOut(Schema):
    """`kind`: `regression`; `small_changes`: confirmed changes within the margin that add up to
    `total_change` with its 95 % `total_interval`; or `broken`: `commit` of `branch` fails in
    `broken_cases` (labels), as `runs` showed. `summary` says it in words, for the last two.
    `confirmed`: a confirmation run confirmed the alert. The first of `change_points` has the
    clearest change; `bisections` search for the commit that caused it. `silenced_until`: when the
    alert opens again automatically. `fixed_by`: the later commit that restored the level. `log`:
    actions on the alert."""

    id: UUID
    kind: AlertKind
    project: str
    benchmark: str
    summary: str
    total_change: float | None
    total_interval: tuple[float, float] | None
    commit: CommitOut | None
    branch: str | None
    broken_cases: list[str]
    runs: list[UUID]
    state: AlertState
    confirmed: bool
    assignee: str | None
    note: str
    raised_at: datetime
    changed_at: datetime
    silenced_until: datetime | None
    fixed_by: CommitOut | None
    log: list[DoneOut]
    web_url: str
    change_points: list[ChangePointOut]
    bisections: list[BisectionOut]


class AlertPage(Schema):
    alerts: list[AlertOut]
    next: str | None


NoteText = Annotated[StorableText, StringConstraints(max_length=MAX_NOTE)]


class NoteIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    note: NoteText = ""


class SilenceIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    until: AwareDatetime
    note: NoteText = ""


class AssigneeIn(BaseModel):
    """The username of a member of the team, or null for nobody."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    assignee: Text | None


class ReasonIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: Text


class BaselineIn(BaseModel):
    """At `commit` a new baseline starts for the history of a case: for all its series, or for the
    one of `host` and `metric`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: Text
    project: Text | None = None
    case: Text
    host: Text | None = None
    metric: Text | None = None
    commit: Text
    reason: Text

    @model_validator(mode="after")
    def _names_a_series(self) -> Self:
        if (self.host is None) != (self.metric is None):
            raise ValueError("name both a host and a metric, or neither")
        return self


class BaselineOut(Schema):
    """`host` and `metric` are null for a whole case."""

    id: UUID
    benchmark: str
    project: str
    case: CaseOut
    host: str | None
    metric: str | None
    commit: CommitOut
    reason: str
    created_by: str | None
    created_at: datetime


class BaselinePage(Schema):
    baselines: list[BaselineOut]
    next: str | None


class ChangeRules(Schema, extra="forbid"):
    """The automatic reactions to a suspected change, and their budget of machine minutes per day
    for all hosts together."""

    confirm: Flag
    bisect: Flag
    machine_minutes_a_day: Whole


def build_change_point_out(row: Any) -> ChangePointOut:
    """Convert a row of `regressions.change_points.with_parts`."""
    series = row.series
    confirmed_interval = None
    if row.confirmed_low is not None and row.confirmed_high is not None:
        confirmed_interval = (row.confirmed_low, row.confirmed_high)
    return ChangePointOut(
        id=row.pk,
        benchmark=series.benchmark.slug,
        project=series.benchmark.project.slug,
        case=build_case_out(series.case),
        host=series.host.name,
        metric=series.metric.key,
        commit=build_commit_out(row.commit),
        before_commit=build_commit_out(row.before),
        kind=ChangeKind(row.kind),
        change=row.change,
        interval=(row.low, row.high),
        p_value=row.p_value,
        level_before=row.level_before,
        level_after=row.level_after,
        regressed=row.regressed,
        state=ChangeState(row.state),
        seen=row.seen,
        message=row.message,
        run=row.run_id,
        confirmed_change=row.confirmed_change,
        confirmed_interval=confirmed_interval,
        culprit=build_commit_out(row.culprit) if row.culprit else None,
        found_at=row.found_at,
        revisions=[RevisionOut(**each) for each in row.revisions],
    )


def build_alert_out(alert: Alert) -> AlertOut:
    rows = sorted(alert.change_points.all(), key=lambda row: row.pk != alert.change_point_id)
    total_interval = None
    if alert.total_low is not None and alert.total_high is not None:
        total_interval = (alert.total_low, alert.total_high)
    return AlertOut(
        id=alert.pk,
        kind=AlertKind(alert.kind),
        project=alert.benchmark.project.slug,
        benchmark=alert.benchmark.slug,
        summary=alert.summary,
        total_change=alert.total_change,
        total_interval=total_interval,
        commit=build_commit_out(alert.commit) if alert.commit else None,
        branch=alert.branch or None,
        broken_cases=[case.label for case in load_broken_cases(alert)],
        runs=[run.pk for run in alert.runs.all()],
        state=AlertState(alert.state),
        confirmed=alert.confirmed,
        assignee=alert.assignee.get_username() if alert.assignee else None,
        note=alert.note,
        raised_at=alert.raised_at,
        changed_at=alert.changed_at,
        silenced_until=alert.silenced_until,
        fixed_by=build_commit_out(alert.fixed_by) if alert.fixed_by else None,
        log=[DoneOut(**each) for each in alert.log],
        web_url=build_web_url("alert", alert.pk),
        change_points=[build_change_point_out(row) for row in rows],
        bisections=[_build_bisection_out(each) for each in load_bisections(alert)],
    )


def _build_bisection_out(search: Bisection) -> BisectionOut:
    steps = [
        StepOut(
            commit=search.path[answer.index],
            change=answer.change,
            blocks=answer.blocks,
            is_bad=is_bad_answer(search, answer),
            run=record.get("run"),
        )
        for answer, record in zip(read_answers(search), search.answers, strict=True)
    ]
    return BisectionOut(
        state=BisectionState(search.state),
        message=search.message,
        good=build_commit_out(search.good),
        commits=search.path,
        unbuildable=[search.path[index] for index in search.unbuildable],
        run=search.run_id,
        steps=steps,
    )


def build_baseline_out(baseline: Baseline) -> BaselineOut:
    series, case = baseline.series, get_baseline_case(baseline)
    return BaselineOut(
        id=baseline.pk,
        benchmark=case.benchmark.slug,
        project=case.benchmark.project.slug,
        case=build_case_out(case),
        host=series.host.name if series else None,
        metric=series.metric.key if series else None,
        commit=build_commit_out(baseline.commit),
        reason=baseline.reason,
        created_by=baseline.created_by.get_username() if baseline.created_by else None,
        created_at=baseline.created_at,
    )


def build_rules_out(project: Project) -> ChangeRules:
    return ChangeRules(
        confirm=project.confirm_changes,
        bisect=project.bisect_changes,
        machine_minutes_a_day=project.machine_minutes_a_day,
    )
