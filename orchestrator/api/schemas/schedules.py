"""Schedules, which start runs automatically."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from ninja import Schema
from pydantic import Field, model_validator

from orchestrator.api.schemas.common import Flag, Number, Text, Whole, build_api_url, build_web_url
from orchestrator.api.schemas.runs import (
    Expression,
    PlacementIn,
    PriorityName,
    UntilName,
    WaitLimit,
)
from orchestrator.benchmarks.spec import MAX_BUILDS, MAX_ROUNDS
from orchestrator.runs.models import Schedule
from orchestrator.runs.schedules import NewSchedule


class ScheduleIn(Schema, extra="forbid"):
    """What to measure, and one start: the times (`cron`), a `branch`, or a pattern of `tags`.

    Other fields are as for a run (`RunIn`). With `branch` or `tags`, each new commit is the
    contender, so none is named; the default `baseline` is its parent.
    """

    name: Annotated[Text, Field(max_length=100)]
    cron: Annotated[Text, Field(max_length=100)] | None = Field(
        None, description="Five fields, in UTC, for example `0 3 * * *`."
    )
    branch: Text | None = None
    tags: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="A pattern, for example `v2.*`; `*` for all tags."
    )
    benchmark: Text
    project: Text | None = None
    baseline: Text | None = None
    contender: Text | None = None
    second_contender: Text | None = None
    hosts: Annotated[list[Text], Field(max_length=100)] = []
    placements: Annotated[list[PlacementIn], Field(max_length=100)] = []
    cases: Expression = ""
    pairwise: Flag = False
    rounds: Annotated[Whole, Field(ge=1, le=MAX_ROUNDS)] | None = None
    builds: Annotated[Whole, Field(ge=1, le=MAX_BUILDS)] | None = None
    resolution: Annotated[Number, Field(gt=0, le=1)] | None = None
    until: UntilName = UntilName.ROUNDS
    budget_s: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    wait_limit_s: WaitLimit | None = None
    priority: PriorityName = PriorityName.NORMAL

    @model_validator(mode="after")
    def _require_one_start(self) -> Self:
        if sum(each is not None for each in (self.cron, self.branch, self.tags)) != 1:
            raise ValueError("name one of cron, branch and tags, which starts it")
        if (self.branch or self.tags) and (self.contender or self.second_contender):
            raise ValueError("each new commit is the contender: omit contender")
        if self.resolution is not None and (self.rounds or self.until != UntilName.ROUNDS):
            raise ValueError("resolution: omit rounds and until, which it determines")
        return self

    def build_schedule(self) -> NewSchedule:
        given = self.model_dump(
            exclude_none=True,
            exclude={"baseline", "contender", "second_contender", "hosts", "placements"},
        )
        return NewSchedule(
            **given,
            baseline_ref=self.baseline or "",
            contender_ref=self.contender or "",
            second_contender_ref=self.second_contender or "",
            hosts=tuple(self.hosts),
            placements=tuple(each.model_dump(exclude_none=True) for each in self.placements),
        )


class EnabledIn(Schema, extra="forbid"):
    enabled: Flag


class ScheduleOut(Schema):
    """`placements` name the requested host for each role. `next_at`: the next start, or for a
    branch or tags the next check; only valid while `enabled`. `last_message`: the result of the
    last start, at `last_at`."""

    id: UUID
    name: str
    enabled: bool
    cron: str | None
    branch: str | None
    tags: str | None
    benchmark: str
    project: str
    baseline: str | None
    contender: str | None
    second_contender: str | None
    hosts: list[str]
    placements: list[dict[str, str]]
    cases: str
    pairwise: bool
    rounds: int | None
    builds: int | None
    resolution: float | None
    until: UntilName
    budget_s: float | None
    wait_limit_s: float | None
    priority: PriorityName
    created_by: str
    next_at: datetime
    last_at: datetime | None
    last_message: str
    url: str
    web_url: str


class SchedulePage(Schema):
    schedules: list[ScheduleOut]
    next: str | None


def build_schedule_out(schedule: Schedule) -> ScheduleOut:
    return ScheduleOut(
        id=schedule.pk,
        name=schedule.name,
        enabled=schedule.enabled,
        cron=schedule.cron or None,
        branch=schedule.branch or None,
        tags=schedule.tags or None,
        benchmark=schedule.benchmark.slug,
        project=schedule.benchmark.project.slug,
        baseline=schedule.baseline_ref or None,
        contender=schedule.contender_ref or None,
        second_contender=schedule.second_contender_ref or None,
        hosts=[host.name for host in schedule.hosts.all()],
        placements=schedule.placements,
        cases=schedule.cases,
        pairwise=schedule.pairwise,
        rounds=schedule.rounds,
        builds=schedule.builds,
        resolution=schedule.resolution,
        until=UntilName(schedule.until),
        budget_s=schedule.budget_s,
        wait_limit_s=schedule.wait_limit_s,
        priority=PriorityName(schedule.get_priority_display().lower()),
        created_by=schedule.created_by.get_username(),
        next_at=schedule.next_at,
        last_at=schedule.last_at,
        last_message=schedule.last_message,
        url=build_api_url(f"schedules/{schedule.pk}"),
        web_url=build_web_url("schedules"),
    )
