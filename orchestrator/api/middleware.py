"""Middleware for /api/, before an operation is reached.

Refusals are problem documents, and a HEAD request is answered like a GET. A client without a valid
token is a visitor and has the rate limit of visitors.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from orchestrator.api.errors import MEDIA_TYPE, build_problem
from orchestrator.api.rate_limits import TooManyRequestsError
from orchestrator.core.api_paths import is_for_programs
from orchestrator.operations.rates import count_visitor

GetResponse = Callable[[HttpRequest], HttpResponse]

_MESSAGES = {
    HTTPStatus.METHOD_NOT_ALLOWED: "{method} is not allowed at {path}; allowed: {allow}",
    HTTPStatus.BAD_REQUEST: "invalid request: the address or headers are not valid HTTP, or "
    "the address has a NUL byte (%00)",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "this body is too large: send it in parts, or import it "
    "with a command on the server",
}


def problems(get_response: GetResponse) -> GetResponse:
    """Turn responses below /api/ by Django and the router into problem documents."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code < 400 or not request.path.startswith("/api/"):
            return response
        if response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        return _build_error_response(request, response)

    return middleware


def answer_head(get_response: GetResponse) -> GetResponse:
    """Handle a HEAD below /api/ as a GET without a body in the answer (RFC 9110, 9.3.2).

    So it has the same permissions, entity tag and rate limit. The web server omits the body.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.method != "HEAD" or not request.path.startswith("/api/"):
            return get_response(request)
        request.method = "GET"
        response = get_response(request)
        request.method = "HEAD"
        if response.streaming:
            response.streaming_content = ()  # type: ignore[attr-defined]
        return response

    return middleware


def limited_visitors(get_response: GetResponse) -> GetResponse:
    """Answer 429 to a program beyond the rate limit of an address, without a valid token.

    The token is checked by the operation, so its validity is known only afterwards; other URLs do
    not check it.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not is_for_programs(request.path):
            return get_response(request)
        sent = request.headers.get("Authorization", "").lower()
        has_token = sent.startswith(("bearer ", "basic "))
        if not has_token:
            return _refuse_beyond_rate(request) or get_response(request)
        response = get_response(request)
        # After an internal error it is unknown whether the token is valid.
        if getattr(request, "has_valid_token", False) or response.status_code >= 500:
            return response
        return _refuse_beyond_rate(request) or response

    return middleware


def _refuse_beyond_rate(request: HttpRequest) -> HttpResponse | None:
    """Count the request of a visitor; return the 429 if it exceeds the limit."""
    rate = count_visitor(request)
    if rate is None or not rate.is_exceeded:
        return None
    answer = build_problem(HTTPStatus.TOO_MANY_REQUESTS, str(TooManyRequestsError(rate)))
    rate.set_headers(answer)
    return answer


def _build_error_response(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    status = HTTPStatus(response.status_code)
    methods = set(response.headers.get("Allow", "").replace(" ", "").split(","))
    allow = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
    template = _MESSAGES.get(status, "{method} {path} was refused")
    answer = build_problem(
        status, template.format(method=request.method, path=request.path, allow=allow)
    )
    if allow:
        answer.headers["Allow"] = allow
    return answer
