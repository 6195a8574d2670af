"""Single trials and their files."""

from uuid import UUID

from django.http import HttpResponse
from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.trials import TrialOut, trial_out
from orchestrator.measurements.prices import costs_of
from orchestrator.measurements.selectors import artifact_content, trial_details
from orchestrator.measurements.trial_files import result_of
from orchestrator.runs.selectors import trial_for

router = Router(tags=["results"])


@router.get("/trials/{uuid:trial_id}", response=TrialOut, summary="Show a trial")
def show_trial(request: CallerRequest, trial_id: UUID) -> TrialOut:
    """The measurements of a suspect or invalid trial are suspect or invalid too; see `reasons`."""
    trial = trial_for(request.auth.member, trial_id)
    details = trial_details(trial)
    return trial_out(details, costs_of(trial, details.values, result_of(trial)))


@router.get(
    "/trials/{uuid:trial_id}/artifacts/{str:name}",
    summary="Download a file of a trial",
    openapi_extra={
        "responses": {
            200: {
                "description": "The unchanged output of the tool",
                "content": {"application/octet-stream": {}},
            }
        }
    },
)
def download_artifact(request: CallerRequest, trial_id: UUID, name: Text) -> HttpResponse:
    content = artifact_content(request.auth.member, trial_id, name)
    # A server under test may have written the content: never let a browser render it.
    response = HttpResponse(content, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = "attachment"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
