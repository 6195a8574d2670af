"""What a page says where an error came that nobody expected."""

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error as usual

from orchestrator.operations.database_away import AWAY, to_be_asked_again


def server_error(request: HttpRequest) -> HttpResponse:
    """500, and 503 where only the database is away."""
    if not isinstance(sys.exc_info()[1], AWAY):
        return usual(request)
    # Without the request: what pages are given of it is asked of the database.
    return to_be_asked_again(HttpResponse(render_to_string("503.html"), status=503))
