"""Start confirmation runs: two commits, the affected cases, the host of the change point."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.choice import MAX_LENGTH
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.models import Series
from orchestrator.runs.models import Run, Until
from orchestrator.runs.plans import RunRequest, count_fresh_builds, plan_run
from orchestrator.runs.services import create_run
from orchestrator.stats.paired import FEWEST_BLOCKS

CASES_LENGTH = MAX_LENGTH


class TooLittleTimeError(InvalidRequestError):
    """The rest of the day's machine time is too short for the rounds that a verdict needs."""


def start_run(
    *,
    member: Member,
    series: Sequence[Series],
    good: Commit,
    commit: Commit,
    trigger: str,
    budget_s: float | None = None,
    rounds: int | None = None,
) -> Run:
    """Queue the confirmation run of two commits in these series, which share benchmark and host.

    Without a number of rounds it continues until its cases are decided. It builds both commits
    several times again: the build in which the change was detected may be the only cause of it.
    Raise TooLittleTimeError if `budget_s` of machine time is too short for a verdict.
    """
    benchmark, host = series[0].benchmark, series[0].host
    request = RunRequest(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        baseline=good.sha,
        contenders=(commit.sha,),
        cases=build_cases_expression(each.case for each in series),
        hosts=(host.name,),
        rounds=rounds,
        until=Until.DECIDED if rounds is None else Until.ROUNDS,
    )
    plan = plan_run(member=member, request=request)
    request = replace(request, builds=count_fresh_builds(plan))
    if budget_s is not None:
        if budget_s < FEWEST_BLOCKS * sum(plan.trial_s) * len(plan.commits):
            raise TooLittleTimeError("the machine time that is left today is too little")
        request = replace(request, budget_s=budget_s)
    return create_run(member=member, request=request, trigger=trigger)


def build_cases_expression(cases: Iterable[Case]) -> str:
    """Return an expression for exactly these cases; empty for a benchmark without axes."""
    known = {case.pk: case for case in cases}
    texts = [_build_case_expression(known[pk]) for pk in sorted(known)]
    return " or ".join(f"({text})" if len(texts) > 1 else text for text in texts)


def _build_case_expression(case: Case) -> str:
    return " and ".join(f"{axis} == {value!r}" for axis, value in sorted(case.parameters.items()))
