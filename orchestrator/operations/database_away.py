"""Recognise errors of a database that is away for a while or that stopped a slow statement.

Such an error is no fault of Pitwall: the database may be restarting, for example.
"""

from typing import Any

import psycopg
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpResponse
from psycopg import errors

#: Django raises these when the database does not answer, and for some faults of Pitwall: see
#: `is_away`.
AWAY = (OperationalError, InterfaceError)
#: The database is usually back soon, and Django then opens new connections by itself.
RETRY_AFTER_S = 2
_CUT_OFF = (errors.QueryCanceled, errors.LockNotAvailable, errors.IdleInTransactionSessionTimeout)


def is_away(error: BaseException | None) -> bool:
    """Return whether the database did not answer or stopped a statement.

    False if this thread used a cursor or a connection that it had closed itself. That is a fault of
    Pitwall, although the types of errors are the same.
    """
    if isinstance(error, InterfaceError | psycopg.InterfaceError):
        return _is_lost()
    if isinstance(error, OperationalError | psycopg.OperationalError):
        return _is_lost() or not _is_closed()
    return False


def _is_lost() -> bool:
    """Return whether this thread lost its connection; Django may have closed it since."""
    used = connection.connection
    return connection.closed_in_transaction or (used is not None and used.broken)


def _is_closed() -> bool:
    return connection.connection is not None and connection.connection.closed


def is_cut_off(error: BaseException | None) -> bool:
    """Return whether the database answers but stopped this statement at one of its time limits."""
    return isinstance(error, AWAY) and isinstance(error.__cause__, _CUT_OFF)


def drop_last_error(connection: Any, **_: Any) -> None:
    """Drop the error that ended the last transaction. A receiver of `connection_created`.

    Django keeps the error for the message of a later one. Its traceback keeps the frames and the
    lost connection with all prepared statements, in each thread until the next such error.
    """
    connection.rollback_exc = None


def mark_retry_after(response: HttpResponse) -> HttpResponse:
    """Return the response with a Retry-After after which the database may be back."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
