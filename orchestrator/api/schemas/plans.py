"""The estimate of a run."""

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CommitOut, build_commit_out
from orchestrator.api.schemas.runs import (
    PinnedRepositoryOut,
    UntilName,
    build_pinned_repositories_out,
)
from orchestrator.benchmarks.matrix import CaseSpec, find_unsupported_reason, is_baseline
from orchestrator.benchmarks.spec import Spec
from orchestrator.runs.plans import RunPlan
from orchestrator.runs.run_warnings import find_warnings


class PlannedCaseOut(Schema):
    """A chosen case; `unsupported` is the reason why it cannot be measured."""

    key: str
    label: str
    parameters: dict[str, str | int | float | bool]
    is_baseline: bool = Field(description="Whether it is the 100 % reference of reports.")
    unsupported: str
    trial_s: float


class PlanOut(Schema):
    """`seconds`: the time on one placement; `machine_seconds`: of all hosts together.

    Both are upper limits, as are `rounds` and `trials`. Unless `until` is `rounds`, a run usually
    takes less: `seconds_typical`, and `seconds_at_least` if every case is decided immediately.
    `definition_is_new`: the repository has a definition that would become this version.
    """

    definition_version: int
    definition_is_new: bool
    baseline: CommitOut
    contenders: list[CommitOut]
    repositories: list[PinnedRepositoryOut]
    cases: list[PlannedCaseOut]
    cases_in_all: int
    rounds: int
    builds: int
    until: UntilName
    budget_s: float | None
    jobs: int
    trials: int
    seconds: float
    seconds_at_least: float
    seconds_typical: float
    machine_seconds: float
    warnings: list[str]


def build_plan_out(plan: RunPlan) -> PlanOut:
    baseline, *contenders = [build_commit_out(commit) for commit in plan.commits]
    return PlanOut(
        definition_version=plan.definition.version,
        definition_is_new=plan.definition_is_new,
        baseline=baseline,
        contenders=contenders,
        repositories=build_pinned_repositories_out(plan.pins),
        cases=[
            _build_case_out(plan.spec, case, seconds)
            for case, seconds in zip(plan.cases, plan.trial_s, strict=True)
        ],
        cases_in_all=plan.cases_in_all,
        rounds=plan.rounds,
        builds=plan.builds,
        until=UntilName(plan.until),
        budget_s=plan.budget_s,
        jobs=plan.job_count,
        trials=plan.trial_count,
        seconds=plan.estimate_seconds(plan.rounds),
        seconds_at_least=plan.estimate_seconds(plan.blocks.least),
        seconds_typical=plan.estimate_seconds(plan.blocks.typical),
        machine_seconds=plan.machine_s,
        warnings=[*plan.warnings, *find_warnings(plan)],
    )


def _build_case_out(spec: Spec, case: CaseSpec, seconds: float) -> PlannedCaseOut:
    return PlannedCaseOut(
        key=case.key,
        label=case.label,
        parameters=dict(case.parameters),
        is_baseline=is_baseline(spec, case.parameters),
        unsupported=find_unsupported_reason(spec, case.parameters),
        trial_s=seconds,
    )
