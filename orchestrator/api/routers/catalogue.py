"""Benchmarks, their definitions, and the catalogue."""

from http import HTTPStatus
from typing import Annotated

from ninja import Query, Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import (
    Cursor,
    Limit,
    NameCursor,
    NumberCursor,
    cut_named_page,
    cut_page,
)
from orchestrator.api.schemas.catalogue import (
    BenchmarkCaseOut,
    BenchmarkOut,
    BenchmarkPage,
    DefinitionChangesOut,
    DefinitionFilesOut,
    DefinitionIn,
    DefinitionOut,
    DefinitionPage,
    ImportIn,
    ReviewOut,
    SuitePage,
    VisibilityIn,
    build_benchmark_case_out,
    build_benchmark_out,
    build_definition_changes_out,
    build_definition_out,
    build_definition_summary_out,
    build_files_out,
    build_review_out,
    build_suite_out,
)
from orchestrator.api.schemas.common import MOST_WHOLE, Text
from orchestrator.api.schemas.deletions import DependentsOut, build_dependents_out
from orchestrator.benchmarks.catalogue import load_suites
from orchestrator.benchmarks.hidden_cases import set_case_hidden
from orchestrator.benchmarks.review import review
from orchestrator.benchmarks.selectors import (
    load_benchmark,
    load_benchmark_with_version,
    load_benchmarks_with_versions,
    load_definition_version,
    load_project,
    load_versions,
)
from orchestrator.benchmarks.services import (
    find_definition_files,
    import_definition,
    save_definition,
    store_in_pitwall,
)
from orchestrator.retention import deletions

router = Router(tags=["benchmarks"])

BENCHMARK = "/benchmarks/{project}/{benchmark}"
VERSIONS = BENCHMARK + "/definitions"


@router.get("/benchmarks", response=BenchmarkPage, summary="List benchmarks, newest first")
def list_benchmarks(
    request: CallerRequest,
    project: Text | None = None,
    cursor: NumberCursor = None,
    limit: Limit = 50,
) -> BenchmarkPage:
    rows = load_benchmarks_with_versions(request.auth.member)
    if project:
        rows = rows.filter(project__slug=project)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return BenchmarkPage(
        benchmarks=[build_benchmark_out(each, each.version) for each in page], next=following
    )


@router.get(BENCHMARK, response=BenchmarkOut, summary="Show a benchmark")
def show_benchmark(request: CallerRequest, project: Text, benchmark: Text) -> BenchmarkOut:
    """Also a draft, which the list leaves out."""
    row = load_benchmark_with_version(request.auth.member, benchmark, project)
    return build_benchmark_out(row, row.version)


@router.get(
    BENCHMARK + "/dependents",
    response=DependentsOut,
    summary="Show what is deleted with a benchmark",
)
def list_benchmark_dependents(
    request: CallerRequest, project: Text, benchmark: Text
) -> DependentsOut:
    row = load_benchmark(request.auth.member, benchmark, project)
    return build_dependents_out(deletions.list_benchmark_dependents(row))


@router.delete(BENCHMARK, response={204: None}, summary="Delete a benchmark")
def delete_benchmark(request: CallerRequest, project: Text, benchmark: Text) -> Status[None]:
    """The benchmark vanishes with its results; its unfinished runs are cancelled.

    It can be restored for 14 days, and is removed afterwards.
    """
    deletions.delete_benchmark(member=request.auth.member, project=project, slug=benchmark)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.put(
    BENCHMARK + "/cases/{case}/visibility",
    response=BenchmarkCaseOut,
    summary="Hide a former case, or show it again",
)
def change_case_visibility(
    request: CallerRequest, project: Text, benchmark: Text, case: Text, payload: VisibilityIn
) -> BenchmarkCaseOut:
    """409 for a case of the newest definition: remove it there first. Its results remain."""
    member = request.auth.member
    row = load_benchmark(member, benchmark, project)
    changed = set_case_hidden(member=member, benchmark=row, key=case, hidden=payload.hidden)
    return build_benchmark_case_out(changed)


@router.post(
    BENCHMARK + "/repository-definition",
    response=BenchmarkOut,
    summary="Store a definition in Pitwall",
)
def store_benchmark_in_pitwall(
    request: CallerRequest, project: Text, benchmark: Text
) -> BenchmarkOut:
    """From now on the definition is changed here; the file in the repository is no longer read."""
    member = request.auth.member
    store_in_pitwall(member=member, benchmark=load_benchmark(member, benchmark, project))
    return show_benchmark(request, project, benchmark)


@router.get(VERSIONS, response=DefinitionPage, summary="List versions, newest first")
def list_definitions(
    request: CallerRequest,
    project: Text,
    benchmark: Text,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DefinitionPage:
    of = load_benchmark(request.auth.member, benchmark, project)
    page, following = cut_page(load_versions(of), after=cursor, limit=limit)
    return DefinitionPage(
        definitions=[build_definition_summary_out(each) for each in page], next=following
    )


@router.get(VERSIONS + "/{int:version}", response=DefinitionOut, summary="Show a version")
def show_definition(
    request: CallerRequest, project: Text, benchmark: Text, version: int
) -> DefinitionOut:
    instance = load_benchmark(request.auth.member, benchmark, project)
    return build_definition_out(load_definition_version(instance, version))


@router.get(
    VERSIONS + "/{int:version}/changes",
    response=DefinitionChangesOut,
    summary="Show the changes of a version",
)
def show_definition_changes(
    request: CallerRequest,
    project: Text,
    benchmark: Text,
    version: int,
    since: Annotated[
        int | None,
        Query(ge=1, le=MOST_WHOLE, description="An earlier version; default: the previous one."),
    ] = None,
) -> DefinitionChangesOut:
    instance = load_benchmark(request.auth.member, benchmark, project)
    after = load_definition_version(instance, version)
    return build_definition_changes_out(
        load_definition_version(instance, since or max(1, after.version - 1)), after
    )


@router.post(VERSIONS, response={201: DefinitionOut}, summary="Save a definition")
def create_definition(
    request: CallerRequest, project: Text, benchmark: Text, payload: DefinitionIn
) -> Status[DefinitionOut]:
    """Stores a new version, or returns the newest one if the text is the same. A new name creates a
    benchmark."""
    member = request.auth.member
    definition = save_definition(
        member=member,
        project=load_project(member, project),
        slug=benchmark,
        source=payload.source,
    )
    return Status(HTTPStatus.CREATED, build_definition_out(definition))


@router.post("/definitions/check", response=ReviewOut, summary="Check a definition")
def check_definition(request: CallerRequest, payload: DefinitionIn) -> ReviewOut:
    """Returns the summary, or the errors with their positions; nothing is saved."""
    return build_review_out(review(payload.source))


@router.get(
    "/projects/{project}/definition-files",
    response=DefinitionFilesOut,
    summary="List the definitions in a repository",
)
def list_definition_files(
    request: CallerRequest, project: Text, ref: Text | None = None
) -> DefinitionFilesOut:
    """As of the last fetch; `POST /projects/{project}/fetch` gets newer commits."""
    instance = load_project(request.auth.member, project)
    return build_files_out(*find_definition_files(project=instance, ref=ref or ""))


@router.post(
    "/projects/{project}/imports",
    response={201: DefinitionOut},
    summary="Store a benchmark in the repository",
)
def import_benchmark(
    request: CallerRequest, project: Text, payload: ImportIn
) -> Status[DefinitionOut]:
    """From now on each run reads the file at its newest contender."""
    member = request.auth.member
    definition = import_definition(
        member=member,
        project=load_project(member, project),
        path=payload.path,
        slug=payload.benchmark or "",
        ref=payload.ref or "",
    )
    return Status(HTTPStatus.CREATED, build_definition_out(definition))


@router.get("/suites", response=SuitePage, summary="List the catalogue, by title")
def list_suites(request: CallerRequest, cursor: NameCursor = None, limit: Limit = 50) -> SuitePage:
    page, following = cut_named_page(
        load_suites(), lambda suite: suite.slug, after=cursor, limit=limit
    )
    return SuitePage(suites=[build_suite_out(each) for each in page], next=following)
