"""What is refused before an operation is reached is a problem document as well."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from orchestrator.api.errors import MEDIA_TYPE, problem

GetResponse = Callable[[HttpRequest], HttpResponse]

_SAID = {
    HTTPStatus.METHOD_NOT_ALLOWED: "{method} is not possible at {path}; what is: {allow}",
    HTTPStatus.BAD_REQUEST: "this request cannot be read: see that its address and headers are "
    "as HTTP wants them",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "this body is larger than any that is taken: send it in "
    "parts, or have it imported by a command on the server",
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


def _told(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    status = HTTPStatus(response.status_code)
    allow = ", ".join(sorted(response.headers.get("Allow", "").replace(" ", "").split(",")))
    said = _SAID.get(status, "{method} {path} was refused")
    answer = problem(status, said.format(method=request.method, path=request.path, allow=allow))
    if allow:
        answer.headers["Allow"] = allow
    return answer
