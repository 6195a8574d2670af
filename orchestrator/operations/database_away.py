"""A database that is away for a while, as one that restarts, or that stopped what took too long: no
mistake of ours."""

from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from psycopg import errors

#: What Django raises where nobody answers.
AWAY = (OperationalError, InterfaceError)
#: It is soon back, and the connections to it are made anew by themselves.
RETRY_AFTER_S = 2
_CUT_OFF = (errors.QueryCanceled, errors.LockNotAvailable, errors.IdleInTransactionSessionTimeout)


def is_cut_off(error: BaseException | None) -> bool:
    """Whether the database answers, and stopped this statement at one of its time limits."""
    return isinstance(error, AWAY) and isinstance(error.__cause__, _CUT_OFF)


def to_be_asked_again(response: HttpResponse) -> HttpResponse:
    """The answer, with the time after which another request may find the database again."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
