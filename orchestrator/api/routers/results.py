"""Finished results: taken in from elsewhere, and given to others."""

import json
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import Annotated
from uuid import UUID

from django.http import StreamingHttpResponse
from ninja import File, Query, Router, Schema
from ninja.files import UploadedFile

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.results import ResultsIn, TakenOut
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import benchmark_for, case_for, commit_for
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.selectors import host_named
from orchestrator.results.recording.bulk import import_file
from orchestrator.results.recording.exporting import exported, readings_of
from orchestrator.results.recording.ingest import take_results
from orchestrator.results.recording.result_files import UPLOAD
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import run_for

router = Router(tags=["results"])


_LINES = {
    "responses": {
        200: {
            "description": "JSON lines: in each a result as `POST /results/files` takes it",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    }
}


class ExportQuery(Schema):
    """Which results; at least a run or a benchmark is named."""

    run: Annotated[UUID | None, Query(description="Only what this run measured.")] = None
    benchmark: Annotated[Text | None, Query(description="Needed where no run is named.")] = None
    project: Text | None = None
    commit: Annotated[Text | None, Query(description="Hash, or seven digits of it.")] = None
    case: Annotated[Text | None, Query(description="The key of a case.")] = None
    host: Annotated[Text | None, Query(description="The name of a host.")] = None


@router.get("/results", summary="Export results", openapi_extra=_LINES)
def export_results(request: CallerRequest, asked: Query[ExportQuery]) -> StreamingHttpResponse:
    """All that fit, oldest first, invalid ones with their reasons too."""
    member = request.auth.member
    run = run_for(member, asked.run) if asked.run else None
    benchmark = _benchmark(request, asked, run)
    rows = readings_of(
        member,
        benchmark,
        run=run,
        case=case_for(benchmark, asked.case) if asked.case else None,
        commit=commit_for(member, benchmark, asked.commit) if asked.commit else None,
        host=host_named(member, asked.host) if asked.host else None,
    )
    lines = (json.dumps(each) + "\n" for each in exported(rows))
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response.headers["Content-Disposition"] = 'attachment; filename="results.jsonl"'
    return response


def _benchmark(request: CallerRequest, asked: ExportQuery, run: Run | None) -> Benchmark:
    if run is not None:
        return run.definition.benchmark
    if asked.benchmark is None:
        raise InvalidRequestError("name the benchmark, or a run", field="benchmark")
    return benchmark_for(request.auth.member, asked.benchmark, asked.project)


@router.post("/results", response=TakenOut, summary="Send finished results")
def send_results(request: CallerRequest, payload: ResultsIn) -> TakenOut:
    """Stores what was measured elsewhere, all of a post or nothing; at most 1,000 results.

    A result that is sent again changes nothing and is counted as `repeated`.
    """
    caller = request.auth
    taken = take_results(member=caller.member, results=payload.results, token=caller.token.name)
    return TakenOut(accepted=taken.accepted, repeated=taken.repeated)


@router.post("/results/files", response=TakenOut, summary="Send a file of finished results")
def send_results_file(
    request: CallerRequest, file: File[UploadedFile], project: Text | None = None
) -> TakenOut:
    """JSON lines or CSV, plain or gzip, at most 200,000 results (docs/importing.md).

    All are checked before the first is stored. `project` is that of results that name none.
    """
    with NamedTemporaryFile(suffix="".join(PurePath(file.name or "").suffixes)[-20:]) as kept:
        for part in file.chunks():
            kept.write(part)
        kept.flush()
        done = import_file(
            member=request.auth.member,
            path=Path(kept.name),
            project=project,
            name=(file.name or "results")[:100],
            bounds=UPLOAD,
        )
    return TakenOut(accepted=done.accepted, repeated=done.repeated)
