"""Comparisons of two commits, or of any other two sides."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.comparisons import ComparisonOut, build_comparison_url
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import load_benchmark, load_benchmarks
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.formats import to_csv, to_dict, to_markdown
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.sides import SideQuery, resolve_sides
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_run

router = Router(tags=["comparisons"])


def _describe_file(media: str, what: str) -> dict[str, Any]:
    return {"responses": {200: {"description": what, "content": {media: {}}}}}


class Selection(Schema):
    """Filters of both sides; those with the prefix `contender_` apply to the contender only."""

    case: Annotated[Text | None, Field(description="The key of a case.")] = None
    host: Annotated[Text | None, Field(description="The name of a host.")] = None
    profile: Annotated[Text | None, Field(description="Hosts of this hardware profile.")] = None
    tool: Annotated[Text | None, Field(description="The load tool.")] = None
    version: Annotated[
        int | None, Field(description="A version of the definition.", ge=1, le=10**9)
    ] = None
    contender_case: Text | None = None
    contender_host: Text | None = None
    contender_profile: Text | None = None
    contender_tool: Text | None = None
    contender_version: Annotated[int | None, Field(ge=1, le=10**9)] = None
    baseline: Annotated[Text | None, Field(description="Hash, or seven digits of it.")] = None
    contender: Annotated[
        Text | None,
        Field(description="The same. Default: the baseline, if another parameter differs."),
    ] = None
    benchmark: Annotated[
        Text | None, Field(description="Optional if the team has only one, or with run.")
    ] = None
    project: Text | None = None
    run: Annotated[
        UUID | None,
        Field(description="Only results of this run; it sets the other defaults."),
    ] = None


@router.get("/comparisons", response=ComparisonOut, summary="Compare two sides")
def show_comparison(request: CallerRequest, selection: Query[Selection]) -> dict[str, Any]:
    """Any two commits, cases, hosts, hardware profiles, load tools or versions of the definition.

    What both sides measured in the same blocks is compared block by block. If they share none, all
    trials of both are compared and `paired` is false: the change contains the drift of the machine.
    `mismatches` are other differences of the sides. 404 if one side was not measured."""
    report, run = _load_report(request.auth.member, selection)
    return to_dict(report, build_comparison_url(report, run))


@router.get(
    "/comparisons/markdown",
    summary="Compare two sides, as Markdown",
    openapi_extra=_describe_file("text/markdown", "The verdict and the most important cases"),
)
def show_comparison_markdown(request: CallerRequest, selection: Query[Selection]) -> HttpResponse:
    """For a pull request: the changed cases, at most 30, and the number of other cases by verdict.
    Text that users entered, such as names of cases, is formatted as code, without mentions and
    links."""
    report, run = _load_report(request.auth.member, selection)
    return _build_response(to_markdown(report, build_comparison_url(report, run)), "text/markdown")


@router.get(
    "/comparisons/csv",
    summary="Compare two sides, as CSV",
    openapi_extra=_describe_file("text/csv", "A row for each metric of each case"),
)
def show_comparison_csv(request: CallerRequest, selection: Query[Selection]) -> HttpResponse:
    """`change`, `low`, `high` and `margin` are shares, 0.05 is 5 %; values are in `unit`."""
    report, _ = _load_report(request.auth.member, selection)
    return _build_response(to_csv(report), "text/csv")


def _build_response(text: str, media: str) -> HttpResponse:
    return HttpResponse(text, content_type=f"{media}; charset=utf-8")


def _load_report(member: Member, selection: Selection) -> tuple[ComparisonReport, Run | None]:
    """The report, and the run that it is limited to, if any."""
    contender = selection.contender
    if selection.run is not None:
        run = load_run(member, selection.run)
        return _compare_run(member, run, selection.baseline, contender, selection), run
    chosen = _find_benchmark(member, selection.benchmark, selection.project)
    first = _require_ref(selection.baseline, "baseline")
    if contender is None and not _has_two_sides(selection):
        raise InvalidRequestError("name the contender, or a run", field="contender")
    return _report(member, chosen, first, contender or first, selection), None


def _compare_run(
    member: Member, run: Run, baseline: str | None, contender: str | None, selection: Selection
) -> ComparisonReport:
    first, *others = [variant.commit for variant in run.variants.all()]
    if contender is None and len(others) > 1:
        raise InvalidRequestError(
            "this run has several contenders; name one of them", field="contender"
        )
    if contender is None and not others and not _has_two_sides(selection):
        raise InvalidRequestError(
            "this run measured one commit alone; name another case or host as the contender's",
            field="contender",
        )
    after = contender or (others[0].sha if others else first.sha)
    benchmark = run.definition.benchmark
    return _report(member, benchmark, baseline or first.sha, after, selection, run)


def _report(
    member: Member,
    benchmark: Benchmark,
    baseline: str,
    contender: str,
    selection: Selection,
    run: Run | None = None,
) -> ComparisonReport:
    sides = resolve_sides(
        member,
        benchmark,
        _build_side_query(baseline, selection, ""),
        _build_side_query(contender, selection, "contender_"),
    )
    return compare_sides(member, benchmark=benchmark, sides=sides, run=run)


def _build_side_query(commit: str, selection: Selection, prefix: str) -> SideQuery:
    parameters = {
        name: str(getattr(selection, prefix + name) or "")
        for name in ("case", "host", "profile", "tool", "version")
    }
    return SideQuery(commit=commit, **parameters)


def _has_two_sides(selection: Selection) -> bool:
    return any(_build_side_query("", selection, "contender_").values())


def _find_benchmark(member: Member, slug: str | None, project: str | None) -> Benchmark:
    if slug is not None:
        return load_benchmark(member, slug, project)
    benchmarks = list(load_benchmarks(member)[:2])
    if not benchmarks:
        raise NotFoundError("the team has no benchmark yet")
    if len(benchmarks) > 1:
        raise InvalidRequestError(
            "the team has several benchmarks; name one of them", field="benchmark"
        )
    return benchmarks[0]


def _require_ref(ref: str | None, field: str) -> str:
    if ref is None:
        raise InvalidRequestError(f"name the {field}, or a run", field=field)
    return ref
