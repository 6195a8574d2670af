"""What can be measured: benchmarks, their definitions, and the catalogue."""

from http import HTTPStatus

from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.catalogue import (
    BenchmarkOut,
    DefinitionFilesOut,
    DefinitionIn,
    DefinitionOut,
    DefinitionSummaryOut,
    ImportIn,
    ReviewOut,
    SuiteOut,
    benchmark_out,
    definition_out,
    definition_summary_out,
    files_out,
    review_out,
    suite_out,
)
from orchestrator.api.schemas.common import Text
from orchestrator.benchmarks.catalogue import suites
from orchestrator.benchmarks.from_repository import definition_files, import_definition
from orchestrator.benchmarks.review import review
from orchestrator.benchmarks.selectors import (
    benchmark_for,
    benchmarks_with_versions,
    project_for,
    version_of,
    versions_of,
)
from orchestrator.benchmarks.services import save_definition

router = Router(tags=["benchmarks"])

VERSIONS = "/benchmarks/{project}/{benchmark}/definitions"


@router.get("/benchmarks", response=list[BenchmarkOut], summary="List benchmarks")
def list_benchmarks(request: CallerRequest) -> list[BenchmarkOut]:
    benchmarks = benchmarks_with_versions(request.auth.member)
    return [benchmark_out(benchmark, benchmark.version) for benchmark in benchmarks]


@router.get(VERSIONS, response=list[DefinitionSummaryOut], summary="List versions, newest first")
def list_definitions(
    request: CallerRequest, project: str, benchmark: str
) -> list[DefinitionSummaryOut]:
    found = benchmark_for(request.auth.member, benchmark, project)
    return [definition_summary_out(each) for each in versions_of(found)]


@router.get(VERSIONS + "/{int:version}", response=DefinitionOut, summary="Show a version")
def show_definition(
    request: CallerRequest, project: str, benchmark: str, version: int
) -> DefinitionOut:
    found = benchmark_for(request.auth.member, benchmark, project)
    return definition_out(version_of(found, version))


@router.post(VERSIONS, response={201: DefinitionOut}, summary="Save a definition")
def create_definition(
    request: CallerRequest, project: str, benchmark: str, payload: DefinitionIn
) -> Status[DefinitionOut]:
    """A new version, or the newest one where the text is the same; the benchmark is made where it
    is new."""
    member = request.auth.member
    definition = save_definition(
        member=member,
        project=project_for(member, project),
        slug=benchmark,
        source=payload.source,
    )
    return Status(HTTPStatus.CREATED, definition_out(definition))


@router.post("/definitions/check", response=ReviewOut, summary="Check a definition")
def check_definition(request: CallerRequest, payload: DefinitionIn) -> ReviewOut:
    """What it comes to, or what is wrong and where; nothing is saved."""
    return review_out(review(payload.source))


@router.get(
    "/projects/{project}/definition-files",
    response=DefinitionFilesOut,
    summary="List the definitions in a repository",
)
def list_definition_files(
    request: CallerRequest, project: str, ref: Text | None = None
) -> DefinitionFilesOut:
    found = project_for(request.auth.member, project)
    return files_out(*definition_files(project=found, ref=ref or ""))


@router.post(
    "/projects/{project}/imports",
    response={201: DefinitionOut},
    summary="Keep a benchmark in the repository",
)
def import_benchmark(
    request: CallerRequest, project: str, payload: ImportIn
) -> Status[DefinitionOut]:
    """From now on each run reads the file at its newest contender."""
    member = request.auth.member
    definition = import_definition(
        member=member,
        project=project_for(member, project),
        path=payload.path,
        slug=payload.benchmark or "",
        ref=payload.ref or "",
    )
    return Status(HTTPStatus.CREATED, definition_out(definition))


@router.get("/suites", response=list[SuiteOut], summary="List the catalogue")
def list_suites(request: CallerRequest) -> list[SuiteOut]:
    return [suite_out(suite) for suite in suites()]
