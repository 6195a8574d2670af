"""A database that is away for a while, as one that restarts: no mistake of ours, and soon over."""

from django.db import InterfaceError, OperationalError
from django.http import HttpResponse

#: What Django raises where nobody answers.
AWAY = (OperationalError, InterfaceError)
#: It is soon back, and the connections to it are made anew by themselves.
RETRY_AFTER_S = 2


def to_be_asked_again(response: HttpResponse) -> HttpResponse:
    """The answer, with the time after which another request may find the database again."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
