"""A database that is away for a while, as one that restarts, or that stopped what took too long: no
mistake of ours."""

import psycopg
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpResponse
from psycopg import errors

#: What Django raises where nobody answers, and at some mistakes of ours: ask `is_away`.
AWAY = (OperationalError, InterfaceError)
#: It is soon back, and the connections to it are made anew by themselves.
RETRY_AFTER_S = 2
_CUT_OFF = (errors.QueryCanceled, errors.LockNotAvailable, errors.IdleInTransactionSessionTimeout)


def is_away(error: BaseException | None) -> bool:
    """Whether the database did not answer, or stopped a statement.

    False where this thread used a cursor or a connection that it had closed itself: that is a
    mistake of ours, which has the same types of errors.
    """
    if isinstance(error, InterfaceError | psycopg.InterfaceError):
        return _is_lost()
    if isinstance(error, OperationalError | psycopg.OperationalError):
        return _is_lost() or not _is_closed()
    return False


def _is_lost() -> bool:
    """Whether this thread's connection ended without us, or Django closed it for that reason."""
    used = connection.connection
    return connection.closed_in_transaction or (used is not None and used.broken)


def _is_closed() -> bool:
    return connection.connection is not None and connection.connection.closed


def is_cut_off(error: BaseException | None) -> bool:
    """Whether the database answers, and stopped this statement at one of its time limits."""
    return isinstance(error, AWAY) and isinstance(error.__cause__, _CUT_OFF)


def to_be_asked_again(response: HttpResponse) -> HttpResponse:
    """The answer, with the time after which another request may find the database again."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
