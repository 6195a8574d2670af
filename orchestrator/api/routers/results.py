"""Import and export of finished results."""

import json
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import Annotated
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from ninja import File, Query, Router, Schema
from ninja.files import UploadedFile
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.common import Text, build_api_url
from orchestrator.api.schemas.results import (
    HistoryStartIn,
    ImportOut,
    ImportPage,
    ResultsIn,
    TakenOut,
    build_import_out,
)
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import load_benchmark, load_case, load_commit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.wakeups import wake_imports
from orchestrator.fleet.selectors import load_host_by_name
from orchestrator.importers.history_values import HistoryOptions
from orchestrator.importers.registry import HISTORY_FORMATS
from orchestrator.measurements.bulk_import import import_file
from orchestrator.measurements.exporting import export_readings, load_readings
from orchestrator.measurements.history_import import (
    discard_history,
    queue_history,
    start_history,
)
from orchestrator.measurements.imports import (
    import_for,
    is_small,
    load_imports,
    queue_import,
)
from orchestrator.measurements.ingest import ingest_results
from orchestrator.measurements.result_files import UPLOAD
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_run

router = Router(tags=["results"])

HistoryFormatName = StrEnum("HistoryFormatName", {name: name for name in HISTORY_FORMATS})  # type: ignore[misc]


class Direction(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"


_LINES = {
    "responses": {
        200: {
            "description": "JSON lines: one result per line, as accepted by `POST /results/files`",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    }
}


class ExportQuery(Schema):
    """A filter of results; a run or a benchmark is required."""

    run: Annotated[UUID | None, Query(description="Only results of this run.")] = None
    benchmark: Annotated[Text | None, Query(description="Required without a run.")] = None
    project: Text | None = None
    commit: Annotated[Text | None, Query(description="Hash, or seven digits of it.")] = None
    case: Annotated[Text | None, Query(description="The key of a case.")] = None
    host: Annotated[Text | None, Query(description="The name of a host.")] = None


@router.get("/results", summary="Export results", openapi_extra=_LINES)
def export_results(request: CallerRequest, query: Query[ExportQuery]) -> StreamingHttpResponse:
    """All results that match, oldest first, including invalid ones with their reasons."""
    member = request.auth.member
    run = load_run(member, query.run) if query.run else None
    benchmark = _find_benchmark(request, query, run)
    rows = load_readings(
        member,
        benchmark,
        run=run,
        case=load_case(benchmark, query.case) if query.case else None,
        commit=load_commit(member, benchmark, query.commit) if query.commit else None,
        host=load_host_by_name(member, query.host) if query.host else None,
    )
    lines = (json.dumps(each) + "\n" for each in export_readings(rows))
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response.headers["Content-Disposition"] = 'attachment; filename="results.jsonl"'
    return response


def _find_benchmark(request: CallerRequest, query: ExportQuery, run: Run | None) -> Benchmark:
    if run is not None:
        return run.definition.benchmark
    if query.benchmark is None:
        raise InvalidRequestError("name the benchmark, or a run", field="benchmark")
    return load_benchmark(request.auth.member, query.benchmark, query.project)


@router.post("/results", response=TakenOut, summary="Send finished results")
def send_results(request: CallerRequest, payload: ResultsIn) -> TakenOut:
    """Stores results that were measured elsewhere: all of a request or none, at most 1,000.

    The sender gives each result an `id`. A result that is sent again changes nothing and is counted
    as `repeated`; the same values with another id are another trial.
    """
    caller = request.auth
    taken = ingest_results(member=caller.member, results=payload.results, token=caller.token.name)
    return TakenOut(accepted=taken.accepted, repeated=taken.repeated)


@router.post(
    "/results/files",
    response={200: TakenOut, 202: ImportOut},
    summary="Send a file of finished results",
)
def send_results_file(
    request: CallerRequest,
    response: HttpResponse,
    file: File[UploadedFile],
    project: Text | None = None,
) -> Status[TakenOut] | Status[ImportOut]:
    """JSON lines or CSV, plain or gzip, at most 200,000 results (docs/importing.md).

    Up to 2,000 results are stored before the answer. For a larger file the answer is 202 and an
    import, which a worker executes: request it until its state is `done` or `failed`. All results
    are checked before the first is stored. `project` is the default for results that name none.
    """
    member = request.auth.member
    name = (file.name or "results")[-100:]
    with NamedTemporaryFile(suffix="".join(PurePath(name).suffixes)[-20:]) as kept:
        for part in file.chunks():
            kept.write(part)
        kept.flush()
        path = Path(kept.name)
        if not is_small(path):
            made = queue_import(member=member, path=path, project=project or "", name=name)
            wake_imports()
            response["Location"] = build_api_url(f"results/imports/{made.pk}")
            return Status(HTTPStatus.ACCEPTED, build_import_out(made))
        done = import_file(member=member, path=path, project=project, name=name, bounds=UPLOAD)
    return Status(HTTPStatus.OK, TakenOut(accepted=done.accepted, repeated=done.repeated))


class HistoryQuery(Schema):
    """How the history of another tool is read; names in the file are used by default."""

    project: Text
    format: Annotated[
        HistoryFormatName | None, Query(description="Default: recognised by the content.")
    ] = None
    benchmark: Annotated[Text | None, Query(description="For all results.")] = None
    host: Annotated[Text | None, Query(description="For all results.")] = None
    commit: Annotated[Text | None, Query(description="Of results that name none.")] = None
    better: Annotated[
        Direction | None, Query(description="Of values whose direction the file does not give.")
    ] = None


@router.post("/results/histories", response={202: ImportOut}, summary="Send a history")
def send_history(
    request: CallerRequest,
    response: HttpResponse,
    file: File[UploadedFile],
    query: Query[HistoryQuery],
) -> Status[ImportOut]:
    """The results of another tool: asv, Bencher, Codespeed, Conbench, github-action-benchmark,
    the-benchmarker, or Pitwall's CSV or JSON of results; several files of asv as a .zip.

    A worker writes a preview. Request the import until its state is `ready`, then start it. A
    history that is not started is removed after two days.
    """
    name = (file.name or "history")[-100:]
    options = {key: value for key, value in query.dict().items() if value and key != "project"}
    with NamedTemporaryFile() as kept:
        for part in file.chunks():
            kept.write(part)
        kept.flush()
        made = queue_history(
            member=request.auth.member,
            path=Path(kept.name),
            project=query.project,
            name=name,
            options=HistoryOptions(**options),
        )
    wake_imports()
    response["Location"] = build_api_url(f"results/imports/{made.pk}")
    return Status(HTTPStatus.ACCEPTED, build_import_out(made))


@router.post(
    "/results/imports/{uuid:import_id}/start",
    response={202: ImportOut},
    summary="Start the import of a history",
)
def start_import(
    request: CallerRequest, import_id: UUID, payload: HistoryStartIn
) -> Status[ImportOut]:
    """Its state must be `ready`. Repeating an import adds nothing that is stored already."""
    started = start_history(
        member=request.auth.member, import_id=import_id, unknown_commits=payload.unknown_commits
    )
    wake_imports()
    return Status(HTTPStatus.ACCEPTED, build_import_out(started))


@router.delete(
    "/results/imports/{uuid:import_id}",
    response={204: None},
    summary="Discard a history that was not started",
)
def discard_import(request: CallerRequest, import_id: UUID) -> Status[None]:
    discard_history(member=request.auth.member, import_id=import_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/results/imports", response=ImportPage, summary="List imports, newest first")
def list_imports(request: CallerRequest, cursor: Cursor = None, limit: Limit = 50) -> ImportPage:
    """Imports of large files; they are listed until 30 days after their end."""
    page, following = cut_page(load_imports(request.auth.member), after=cursor, limit=limit)
    return ImportPage(imports=[build_import_out(each) for each in page], next=following)


@router.get(
    "/results/imports/{uuid:import_id}",
    response=ImportOut,
    summary="Show the progress of an import",
)
def read_import(request: CallerRequest, import_id: UUID) -> ImportOut:
    return build_import_out(import_for(request.auth.member, import_id))
