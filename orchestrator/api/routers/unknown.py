"""Everything else below /api/v1/: not found, said in the API's own way. Mounted last."""

from django.http import HttpRequest, HttpResponse
from ninja import Router

from orchestrator.api.errors import unknown_path

router = Router()
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@router.api_operation(METHODS, "/{path:rest}", auth=None, include_in_schema=False)
def nothing_here(request: HttpRequest, rest: str) -> HttpResponse:
    return unknown_path(request)
