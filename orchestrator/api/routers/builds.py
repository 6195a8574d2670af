"""Logs of builds."""

from django.http import HttpResponse
from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.runs.job_details import build_for

router = Router(tags=["runs"])


@router.get(
    "/builds/{int:build_id}/log",
    summary="Read the log of a build",
    openapi_extra={
        "responses": {
            200: {
                "description": "The output of the build so far",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        }
    },
)
def read_build_log(request: CallerRequest, build_id: int) -> HttpResponse:
    """The log grows while the build runs."""
    log = build_for(request.auth.member, build_id).log
    response = HttpResponse(log, content_type="text/plain; charset=utf-8")
    # The content is from the commit: never let a browser interpret it as a page.
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
