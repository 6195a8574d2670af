"""What a page says where an error came that nobody expected."""

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error as usual

from orchestrator.operations.database_away import is_away, is_cut_off, to_be_asked_again


def server_error(request: HttpRequest) -> HttpResponse:
    """500, and 503 where only the database is away, or stopped a statement that took too long."""
    error = sys.exc_info()[1]
    if not is_away(error):
        return usual(request)
    # Without the request: what pages are given of it is asked of the database.
    page = "503_cut_off.html" if is_cut_off(error) else "503.html"
    return to_be_asked_again(HttpResponse(render_to_string(page), status=503))
