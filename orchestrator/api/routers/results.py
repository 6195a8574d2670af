"""Finished results that were measured elsewhere."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.results import ResultsIn, TakenOut
from orchestrator.results.ingest import take_results

router = Router(tags=["results"])


@router.post("/results", response=TakenOut, summary="Send finished results")
def send_results(request: CallerRequest, payload: ResultsIn) -> TakenOut:
    """Stores what was measured elsewhere, all of a post or nothing; at most 1,000 results.

    A result that is sent again changes nothing and is counted as `repeated`.
    """
    caller = request.auth
    taken = take_results(member=caller.member, results=payload.results, token=caller.token.name)
    return TakenOut(accepted=taken.accepted, repeated=taken.repeated)
