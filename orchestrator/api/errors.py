"""The one map from our errors to HTTP: every refusal is a problem document (RFC 9457)."""

import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from orchestrator.core.errors import (
    ConflictError,
    HostError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
    PitwallError,
)

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
STATUS_OF: dict[type[PitwallError], HTTPStatus] = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    PermissionRefusedError: HTTPStatus.FORBIDDEN,
    InvalidRequestError: HTTPStatus.UNPROCESSABLE_ENTITY,
    ConflictError: HTTPStatus.CONFLICT,
    HostError: HTTPStatus.BAD_GATEWAY,
}


def problem(status: int, detail: str, *, field: str | None = None) -> HttpResponse:
    """A problem document; `field` is left out where the whole request is meant."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    if field:
        body["field"] = field
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)


def add_handlers(api: NinjaAPI) -> None:
    handlers: dict[type[Exception], Any] = {
        PitwallError: _refused,
        ValidationError: _not_valid,
        AuthenticationError: _not_authenticated,
        HttpError: _http_error,
        Http404: unknown_path,
        Exception: _bug,
    }
    for error, handler in handlers.items():
        api.add_exception_handler(error, handler)


@csrf_exempt
def unknown_path(request: HttpRequest, _error: object = None) -> HttpResponse:
    return problem(
        HTTPStatus.NOT_FOUND, f"there is nothing at {request.path}; /api/v1/docs lists what is"
    )


def _refused(request: HttpRequest, error: PitwallError) -> HttpResponse:
    statuses = (STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
    status = next(statuses, HTTPStatus.INTERNAL_SERVER_ERROR)
    return problem(status, str(error), field=getattr(error, "field", None))


def _not_valid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    field = _field_of(first["loc"])
    detail = f"{field}: {first['msg']}" if field else first["msg"]
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, field=field)


def _not_authenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    sent = "Authorization" in request.headers
    detail = "send the header Authorization: Bearer with an API token of the team's settings"
    if sent and str(error) != "Unauthorized":
        detail = str(error)
    response = problem(HTTPStatus.UNAUTHORIZED, detail)
    response["WWW-Authenticate"] = 'Bearer realm="pitwall"' + (
        ', error="invalid_token"' if sent else ""
    )
    return response


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem(error.status_code, str(error))


def _bug(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "a mistake in Pitwall; the server's log has the details"
    )


def _field_of(location: Iterable[str | int]) -> str | None:
    """`("body", "payload", "hosts", 0)` as `hosts[0]`: without the names of our own code."""
    source, *path = location
    if source == "body":
        path = path[1:]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or None
