"""Backfills: runs of earlier commits."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import (
    CommitOut,
    Flag,
    Text,
    Whole,
    build_api_url,
    build_commit_out,
    build_web_url,
)
from orchestrator.api.schemas.runs import Expression, PlacementIn
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.runs.backfills import (
    BackfillPlan,
    BackfillRequest,
    SkippedCommit,
    explain_run,
    load_backfill_runs,
    load_skipped,
)
from orchestrator.runs.earlier_commits import MOST_LOOKED_AT, CommitSelection, CommitSource
from orchestrator.runs.models import Backfill, Run
from orchestrator.runs.states import RunState


class BackfillIn(Schema, extra="forbid"):
    """The commits to measure, and where.

    `last`: the newest `count` commits of `branch` (default: the default branch). `range`: the
    commits from `since` to `until`, both included. `tags`: the tags that match the pattern `tags`.
    Of these, each `every`-th is measured. Other fields are as for a run (`RunIn`).
    """

    benchmark: Text
    project: Text | None = None
    commits: CommitSource = CommitSource.LAST
    branch: Text = ""
    count: Annotated[Whole, Field(ge=1, le=MOST_LOOKED_AT)] = 20
    every: Annotated[Whole, Field(ge=1, le=MOST_LOOKED_AT)] = 1
    tags: Text = "*"
    since: Text = ""
    until: Text = ""
    hosts: Annotated[list[Text], Field(max_length=100)] = []
    placements: Annotated[list[PlacementIn], Field(max_length=100)] = []
    cases: Expression = ""
    pairwise: Flag = False
    rounds: Annotated[Whole, Field(ge=1, le=MAX_ROUNDS)] | None = None
    again: Flag = Field(
        False, description="Also commits that are measured already, or failed in a backfill."
    )

    def build_request(self) -> BackfillRequest:
        return BackfillRequest(
            benchmark=self.benchmark,
            project=self.project,
            selection=CommitSelection(
                source=self.commits,
                branch=self.branch,
                count=self.count,
                every=self.every,
                tags=self.tags,
                since=self.since,
                until=self.until,
            ),
            cases=self.cases,
            pairwise=self.pairwise,
            hosts=tuple(self.hosts),
            placements=tuple(each.model_dump(exclude_none=True) for each in self.placements),
            rounds=self.rounds,
            again=self.again,
        )


class SkippedCommitOut(Schema):
    """A selected commit that is skipped, and the reason."""

    commit: CommitOut
    reason: str


class BackfillPlanOut(Schema):
    """`commits` in the order of their runs. `ends_at`: the expected end; null without commits."""

    commits: list[CommitOut]
    skipped: list[SkippedCommitOut]
    trials: int
    machine_seconds: float
    ends_at: datetime | None
    warnings: list[str]


class BackfillRunOut(Schema):
    """The run of one commit; `message`: why it failed, such as the output of a failed build."""

    commit: CommitOut
    run: UUID
    state: RunState
    message: str
    url: str


class BackfillSummaryOut(Schema):
    id: UUID
    benchmark: str
    project: str
    selection: str
    created_by: str | None
    created_at: datetime
    url: str
    web_url: str


class BackfillOut(BackfillSummaryOut):
    """`runs` in their order."""

    runs: list[BackfillRunOut]
    skipped: list[SkippedCommitOut]


class BackfillPage(Schema):
    backfills: list[BackfillSummaryOut]
    next: str | None


def build_backfill_plan_out(plan: BackfillPlan) -> BackfillPlanOut:
    return BackfillPlanOut(
        commits=[build_commit_out(commit) for commit in plan.commits],
        skipped=[_build_skipped_out(each) for each in plan.skipped],
        trials=plan.trial_count,
        machine_seconds=plan.machine_s,
        ends_at=plan.finish,
        warnings=plan.warnings,
    )


def build_backfill_summary_out(backfill: Backfill) -> BackfillSummaryOut:
    return BackfillSummaryOut(
        id=backfill.pk,
        benchmark=backfill.benchmark.slug,
        project=backfill.benchmark.project.slug,
        selection=backfill.selection,
        created_by=backfill.created_by.get_username() if backfill.created_by else None,
        created_at=backfill.created_at,
        url=build_api_url(f"backfills/{backfill.pk}"),
        web_url=build_web_url("backfill", backfill.pk),
    )


def build_backfill_out(backfill: Backfill) -> BackfillOut:
    return BackfillOut(
        **build_backfill_summary_out(backfill).model_dump(),
        runs=[_build_run_out(run) for run in load_backfill_runs(backfill)],
        skipped=[_build_skipped_out(each) for each in load_skipped(backfill)],
    )


def _build_run_out(run: Run) -> BackfillRunOut:
    return BackfillRunOut(
        commit=build_commit_out(run.variants.all()[0].commit),
        run=run.pk,
        state=RunState(run.state),
        message=explain_run(run),
        url=build_api_url(f"runs/{run.pk}"),
    )


def _build_skipped_out(each: SkippedCommit) -> SkippedCommitOut:
    return SkippedCommitOut(commit=build_commit_out(each.commit), reason=each.reason)
