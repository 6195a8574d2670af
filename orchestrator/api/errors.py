"""The only map from exceptions to HTTP: every refusal is a problem document (RFC 9457)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from orchestrator.api.gate import UnsupportedMediaError
from orchestrator.api.rate_limits import TooManyRequestsError
from orchestrator.benchmarks.refs import FetchRunningError
from orchestrator.core.errors import (
    ConflictError,
    GoneError,
    HostError,
    InvalidRequestError,
    NotFoundError,
    NotReadyError,
    PermissionRefusedError,
    PitwallError,
)
from orchestrator.operations.database_away import AWAY, is_away, is_cut_off, mark_retry_after
from orchestrator.operations.fetch_waits import ask_again, get_fetch_wait

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_AWAY = "the database does not answer: repeat this request, with its Idempotency-Key if it has one"
_CUT_OFF = (
    "the database stopped this request at its time limit: request less, "
    "for example fewer commits or cases, or try again later"
)
STATUS_OF: dict[type[PitwallError], HTTPStatus] = {
    GoneError: HTTPStatus.GONE,
    NotFoundError: HTTPStatus.NOT_FOUND,
    PermissionRefusedError: HTTPStatus.FORBIDDEN,
    InvalidRequestError: HTTPStatus.UNPROCESSABLE_ENTITY,
    ConflictError: HTTPStatus.CONFLICT,
    NotReadyError: HTTPStatus.SERVICE_UNAVAILABLE,
    HostError: HTTPStatus.BAD_GATEWAY,
}


def build_problem(
    status: int,
    detail: str,
    *,
    field: str | None = None,
    faults: Sequence[tuple[str | None, str]] = (),
    kind: str = "about:blank",
) -> HttpResponse:
    """Return a problem document; `field` is omitted if the problem is about the whole request.

    `errors` lists all faults if there are several; `detail` and `field` are those of the first.
    """
    body: dict[str, Any] = {
        "type": kind,
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    if field:
        body["field"] = field
    if len(faults) > 1:
        body["errors"] = [{"field": where, "detail": what} for where, what in faults]
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)


def add_handlers(api: NinjaAPI) -> None:
    handlers: dict[type[Exception], Any] = {
        FetchRunningError: _fetch_running,
        PitwallError: _answer_refused,
        ValidationError: _answer_invalid,
        AuthenticationError: _answer_unauthenticated,
        HttpError: _answer_http_error,
        Http404: answer_unknown_path,
        TooManyRequestsError: _answer_too_many,
        UnsupportedMediaError: _answer_unsupported_media,
        RequestDataTooBig: _answer_too_big,
        SuspiciousOperation: _answer_unreadable,
        MultiPartParserError: _answer_unreadable,
        RawPostDataException: _answer_unreadable,
        # The client closed its connection, or sent its body too slowly.
        UnreadablePostError: _answer_unreadable,
        # Half of a surrogate pair in a text: it cannot be encoded, neither to store nor to return
        # it.
        UnicodeEncodeError: _answer_unreadable,
        **dict.fromkeys(AWAY, _answer_database_error),
        Exception: _answer_bug,
    }
    for error, handler in handlers.items():
        api.add_exception_handler(error, handler)


@csrf_exempt
def answer_unknown_path(request: HttpRequest, _error: object = None) -> HttpResponse:
    return build_problem(
        HTTPStatus.NOT_FOUND, f"there is no endpoint {request.path}; /api/v1/docs lists all"
    )


def _answer_refused(request: HttpRequest, error: PitwallError) -> HttpResponse:
    statuses = (STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
    status = next(statuses, HTTPStatus.INTERNAL_SERVER_ERROR)
    faults = getattr(error, "faults", ())
    return build_problem(status, str(error), field=getattr(error, "field", None), faults=faults)


def _fetch_running(request: HttpRequest, error: FetchRunningError) -> HttpResponse:
    """Ask for a retry, which `curl --retry` and `cli` do; `progress` is the output of git."""
    fetch = get_fetch_wait(request).hold(error)
    detail = f"{error} ({fetch.progress})" if fetch.progress else str(error)
    answer = build_problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, kind="fetch-running")
    return ask_again(answer)


def _answer_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [(_format_location(each["loc"]), _format_message(each)) for each in error.errors]
    field, message = faults[0]
    detail = f"{field}: {message}" if field else message
    return build_problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, field=field, faults=faults)


def _answer_unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    sent = "Authorization" in request.headers
    detail = "send the header Authorization: Bearer with an API token of the team's settings"
    if sent and str(error) != "Unauthorized":
        detail = str(error)
    response = build_problem(HTTPStatus.UNAUTHORIZED, detail)
    response["WWW-Authenticate"] = 'Bearer realm="pitwall"' + (
        ', error="invalid_token"' if sent else ""
    )
    return response


def _answer_too_many(request: HttpRequest, error: TooManyRequestsError) -> HttpResponse:
    return build_problem(HTTPStatus.TOO_MANY_REQUESTS, str(error))


def _answer_unsupported_media(request: HttpRequest, error: UnsupportedMediaError) -> HttpResponse:
    return build_problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, str(error))


def _answer_too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    most = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) // 1024
    return build_problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"this body is larger than the limit of {most} kB: send it in parts, "
        "or results as a file to /api/v1/results/files",
    )


def _answer_unreadable(request: HttpRequest, error: Exception) -> HttpResponse:
    return build_problem(HTTPStatus.BAD_REQUEST, f"invalid request: {error}")


def _answer_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return build_problem(error.status_code, str(error))


def _answer_database_error(request: HttpRequest, error: Exception) -> HttpResponse:
    if not is_away(error):
        return _answer_bug(request, error)
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    detail = _CUT_OFF if is_cut_off(error) else _AWAY
    return mark_retry_after(build_problem(HTTPStatus.SERVICE_UNAVAILABLE, detail))


def _answer_bug(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return build_problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "an internal error; the server's log has the details"
    )


def _format_message(error: Mapping[str, Any]) -> str:
    """Return the message, without the prefix that pydantic adds."""
    return str(error["msg"]).removeprefix("Value error, ")


def _format_location(location: Iterable[str | int]) -> str | None:
    """Format `("body", "payload", "hosts", 0)` as `hosts[0]`, without names of parameters."""
    source, *path = location
    if source == "body":
        path = path[1:]
    named = (part for part in path if part != "[key]")
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in named)
    return text.lstrip(".") or None
