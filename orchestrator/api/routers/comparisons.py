"""What changed between two commits."""

from typing import Annotated
from uuid import UUID

from ninja import Query, Router

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.comparisons import ComparisonOut, comparison_out
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import benchmark_for, benchmarks_of, commit_for
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.results.comparisons import compare_commits
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import run_for

router = Router(tags=["results"])


@router.get("/comparisons", response=ComparisonOut, summary="Compare two commits")
def show_comparison(
    request: CallerRequest,
    baseline: Annotated[Text | None, Query(description="Hash, or seven digits of it.")] = None,
    contender: Annotated[Text | None, Query(description="Hash, or seven digits of it.")] = None,
    benchmark: Annotated[
        Text | None, Query(description="May be left out where the team has only one, or with run.")
    ] = None,
    project: Text | None = None,
    run: Annotated[
        UUID | None,
        Query(description="Only what this run measured; it gives what is left out beside it."),
    ] = None,
) -> ComparisonOut:
    """404 where the two were never measured together: numbers from different times of a machine
    are no evidence about a commit."""
    member = request.auth.member
    if run is not None:
        return _of_run(member, run_for(member, run), baseline, contender)
    chosen = _benchmark(member, benchmark, project)
    report = compare_commits(
        member,
        benchmark=chosen,
        baseline=commit_for(member, chosen, _needed(baseline, "baseline")),
        contender=commit_for(member, chosen, _needed(contender, "contender")),
    )
    return comparison_out(report)


def _of_run(member: Member, run: Run, baseline: str | None, contender: str | None) -> ComparisonOut:
    benchmark = run.definition.benchmark
    first, *others = [variant.commit for variant in run.variants.all()]
    if contender is None and len(others) > 1:
        raise InvalidRequestError(
            "this run has several contenders; name one of them", field="contender"
        )
    report = compare_commits(
        member,
        benchmark=benchmark,
        baseline=commit_for(member, benchmark, baseline) if baseline else first,
        contender=commit_for(member, benchmark, contender) if contender else others[0],
        run=run,
    )
    return comparison_out(report, run)


def _benchmark(member: Member, slug: str | None, project: str | None) -> Benchmark:
    if slug is not None:
        return benchmark_for(member, slug, project)
    benchmarks = list(benchmarks_of(member)[:2])
    if not benchmarks:
        raise NotFoundError("the team has no benchmark yet")
    if len(benchmarks) > 1:
        raise InvalidRequestError(
            "the team has several benchmarks; name one of them", field="benchmark"
        )
    return benchmarks[0]


def _needed(ref: str | None, field: str) -> str:
    if ref is None:
        raise InvalidRequestError(f"name the {field}, or a run", field=field)
    return ref
