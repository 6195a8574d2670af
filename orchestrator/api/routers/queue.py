"""The queue: all jobs that wait for their hosts."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NameCursor, cut_named_page
from orchestrator.api.schemas.queue import QueuePage, build_queue_entry_out
from orchestrator.runs.queue_forecast import load_queue, load_queue_entries

router = Router(tags=["runs"])


@router.get("/queue", response=QueuePage, summary="List queued jobs, the next one first")
def list_queue(request: CallerRequest, cursor: NameCursor = None, limit: Limit = 50) -> QueuePage:
    """The order, and the expected starts, change with each job that comes or ends."""
    member = request.auth.member
    page, following = cut_named_page(
        load_queue(member), lambda place: str(place.job_id), after=cursor, limit=limit
    )
    entries = load_queue_entries(member, page)
    return QueuePage(jobs=[build_queue_entry_out(entry) for entry in entries], next=following)
