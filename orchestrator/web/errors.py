"""Show errors as pages with the right status, including unexpected errors."""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.defaults import server_error as usual

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
from orchestrator.core.issued_secrets import has_secret
from orchestrator.operations.database_away import is_away, is_cut_off, mark_retry_after
from orchestrator.operations.fetch_waits import ask_again, get_fetch_wait
from orchestrator.web.middleware import (
    GetResponse,
)

#: The one mapping from errors to HTTP; the first class that fits is used.
STATUS: tuple[tuple[type[PitwallError], int, str], ...] = (
    (GoneError, 410, "Removed"),
    (NotFoundError, 404, "Not found"),
    (PermissionRefusedError, 403, "Not allowed"),
    (InvalidRequestError, 400, "Action not possible"),
    (ConflictError, 409, "Not possible now"),
    (NotReadyError, 503, "Not ready"),
    (HostError, 502, "The host could not be used"),
    (PitwallError, 500, "Something went wrong"),
)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return 500; 503 if the database is away or stopped a slow statement."""
    error = sys.exc_info()[1]
    if not is_away(error):
        return usual(request)
    # Without the request: its context processors would query the database.
    page = "503_cut_off.html" if is_cut_off(error) else "503.html"
    return mark_retry_after(HttpResponse(render_to_string(page), status=503))


def translate_errors(get_response: GetResponse) -> GetResponse:
    """Middleware: an error that no form has shown becomes a page with its status."""

    def middleware(request: HttpRequest) -> HttpResponse:
        return get_response(request)

    middleware.process_exception = render_error_page  # type: ignore[attr-defined]
    return middleware


def find_status(error: PitwallError) -> tuple[int, str]:
    """Return the HTTP status of an error and its headline."""
    return next((status, title) for kind, status, title in STATUS if isinstance(error, kind))


def find_referring_page(request: HttpRequest) -> str:
    """Return the page of ours with the link or button that led here; empty if there is none."""
    page = request.headers.get("Referer", "")
    ours = url_has_allowed_host_and_scheme(page, {request.get_host()})
    here = request.build_absolute_uri()
    # Pages with a secret in their address send only the name of this server.
    bare = has_secret(here) and page == request.build_absolute_uri("/")
    return page if ours and page != here and not bare else ""


def render_error_page(request: HttpRequest, error: Exception) -> HttpResponse | None:
    if not isinstance(error, PitwallError):
        return None
    if isinstance(error, FetchRunningError):
        return _fetch_page(request, error)
    status, title = find_status(error)
    partial = "#message" if request.headers.get("HX-Request") else ""
    context = {
        "title": title,
        "message": str(error),
        "status": status,
        "back": find_referring_page(request),
    }
    return render(request, f"error.html{partial}", context, status=status)


def _fetch_page(request: HttpRequest, error: FetchRunningError) -> HttpResponse:
    """Show the progress of the fetch. When it has ended, the page repeats the request by itself."""
    fetch = get_fetch_wait(request).hold(error)
    sent = request.GET if request.method == "GET" else request.POST
    context = {
        "project": error.project,
        "fetch": fetch,
        "is_awaited": True,
        "wait": get_fetch_wait(request).key,
        "method": "get" if request.method == "GET" else "post",
        "address": request.path if request.method == "GET" else request.get_full_path(),
        "values": [
            (name, value)
            for name, values in sent.lists()
            if name != "csrfmiddlewaretoken"
            for value in values
        ],
    }
    # An error status would appear in browsers' logs. The request is accepted and waits for the
    # fetch.
    response = render(request, "projects/fetching.html", context, status=202)
    return ask_again(response)
