"""Middleware for every request: its id in the log, its time in the metrics, its span."""

import re
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from orchestrator.core.counting import count, observe
from orchestrator.core.ids import new_hex
from orchestrator.core.logs import logging_about
from orchestrator.core.spans import mark_span, span
from orchestrator.core.waits import wait_in

GetResponse = Callable[[HttpRequest], HttpResponse]

#: The id that a proxy gave is used only in this form.
_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def watched(get_response: GetResponse) -> GetResponse:
    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _ID.fullmatch(given) else new_hex()[:16]
        method = request.method if request.method in _METHODS else "other"
        began = time.perf_counter()
        with logging_about(request=request_id), span(f"request {method}"):
            response = get_response(request)
            route = _get_route(request)
            mark_span(route=route, status=response.status_code)
        wait = wait_in(request.META)
        if wait is not None and wait.parking_requested:
            return response  # handled again later: only the final response counts
        seconds = time.perf_counter() - began
        observe("pitwall_http_request_seconds", seconds, route=route, method=str(method))
        count("pitwall_http_responses_total", method=str(method), status=str(response.status_code))
        response.headers["X-Request-ID"] = request_id
        return response

    return middleware


def _get_route(request: HttpRequest) -> str:
    """Return the URL pattern of the request, which contains no ids and no names of teams."""
    match = request.resolver_match
    return f"/{match.route}" if match else "unknown or static"
