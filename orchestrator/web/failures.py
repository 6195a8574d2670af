"""What a page says where an error came that nobody expected."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error as usual

#: A database that restarts is soon back, and the connections to it are made anew by themselves.
RETRY_AFTER_S = 2


def server_error(request: HttpRequest) -> HttpResponse:
    """A database that is away for a while is no mistake of ours: 503, and not 500."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return usual(request)
    # Without the request: what pages are given of it is asked of the database.
    response = HttpResponse(render_to_string("503.html"), status=503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
