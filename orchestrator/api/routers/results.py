"""Finished results that were measured elsewhere."""

from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile

from ninja import File, Router
from ninja.files import UploadedFile

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.results import ResultsIn, TakenOut
from orchestrator.results.recording.bulk import import_file
from orchestrator.results.recording.ingest import take_results

router = Router(tags=["results"])

#: Of a file that is sent; a command takes any number.
MOST_IN_A_FILE = 200_000


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
            most=MOST_IN_A_FILE,
        )
    return TakenOut(accepted=done.accepted, repeated=done.repeated)
