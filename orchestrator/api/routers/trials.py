"""Single trials and their files."""

from uuid import UUID

from django.http import HttpResponse
from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.trials import TrialOut, build_trial_out
from orchestrator.measurements.prices import list_costs
from orchestrator.measurements.selectors import load_artifact, load_trial_details
from orchestrator.measurements.trial_files import load_result
from orchestrator.runs.selectors import load_trial

router = Router(tags=["trials"])


@router.get("/trials/{uuid:trial_id}", response=TrialOut, summary="Show a trial")
def show_trial(request: CallerRequest, trial_id: UUID) -> TrialOut:
    """The measurements of a suspect or invalid trial are suspect or invalid too; see `reasons`."""
    trial = load_trial(request.auth.member, trial_id)
    details = load_trial_details(trial)
    return build_trial_out(details, list_costs(trial, details.values, load_result(trial)))


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
    content = load_artifact(request.auth.member, trial_id, name)
    # A server under test may have written the content: never let a browser render it.
    response = HttpResponse(content, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = "attachment"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
