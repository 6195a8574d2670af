"""What holds below /api/ before an operation is reached: refusals are problem documents, and a HEAD
is answered like its GET. Who has no valid token is a visitor, and has the rate of one."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from orchestrator.api.errors import MEDIA_TYPE, problem
from orchestrator.api.limits import TooManyRequestsError
from orchestrator.operations.rates import count_visitor

GetResponse = Callable[[HttpRequest], HttpResponse]

_SAID = {
    HTTPStatus.METHOD_NOT_ALLOWED: "{method} is not possible at {path}; what is: {allow}",
    HTTPStatus.BAD_REQUEST: "invalid request: the address or headers are not valid HTTP",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "this body is too large: send it in parts, or import it "
    "with a command on the server",
}


def problems(get_response: GetResponse) -> GetResponse:
    """Below /api/: what Django and the router answer with in their own words, in ours."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code < 400 or not request.path.startswith("/api/"):
            return response
        if response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        return _told(request, response)

    return middleware


def heads(get_response: GetResponse) -> GetResponse:
    """Below /api/: a HEAD is a GET whose body is not sent (RFC 9110, 9.3.2), so that it has the
    permissions, the entity tag and the rate of one. The web server leaves the body out."""

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
    """Below /api/: 429 beyond the rate of an address, for requests without a valid token.

    Whether a token is valid is known afterwards: an operation asks for it, and other addresses do
    not look at it.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/api/"):
            return get_response(request)
        has_token = request.headers.get("Authorization", "").lower().startswith("bearer ")
        if not has_token:
            return _refuse_beyond_rate(request) or get_response(request)
        response = get_response(request)
        # After a failure of ours nobody knows whether the token is valid.
        if getattr(request, "has_valid_token", False) or response.status_code >= 500:
            return response
        return _refuse_beyond_rate(request) or response

    return middleware


def _refuse_beyond_rate(request: HttpRequest) -> HttpResponse | None:
    """Counts the request of a visitor."""
    rate = count_visitor(request)
    if rate is None or not rate.is_exceeded:
        return None
    answer = problem(HTTPStatus.TOO_MANY_REQUESTS, str(TooManyRequestsError(rate)))
    rate.tell(answer)
    return answer


def _told(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    status = HTTPStatus(response.status_code)
    methods = set(response.headers.get("Allow", "").replace(" ", "").split(","))
    allow = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
    said = _SAID.get(status, "{method} {path} was refused")
    answer = problem(status, said.format(method=request.method, path=request.path, allow=allow))
    if allow:
        answer.headers["Allow"] = allow
    return answer
