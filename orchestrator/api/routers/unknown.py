"""404 as a problem document for all other URLs below /api/v1/. Mounted last."""

from django.http import HttpRequest, HttpResponse
from ninja import Router

from orchestrator.api.errors import answer_unknown_path

router = Router()
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@router.api_operation(METHODS, "/{path:rest}", auth=None, include_in_schema=False)
def answer_unknown_address(request: HttpRequest, rest: str) -> HttpResponse:
    return answer_unknown_path(request)
