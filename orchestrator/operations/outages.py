"""One log line when PostgreSQL or Redis goes away and one when it is back, instead of tracebacks.

Other messages about the absent server (from Django, Celery, kombu or Pitwall) are only counted. A
filter on the log handler sees all of them.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType

import kombu.exceptions
import psycopg
import redis
from django.db import connection

from orchestrator.database.shared_redis import connect_redis
from orchestrator.operations.database_away import is_away

logger = logging.getLogger(__name__)

#: Classes and codes of PostgreSQL's errors for a lost connection or a server that stops.
_AWAY_STATES = ("08", "57P")
_REDIS_AWAY = (redis.ConnectionError, redis.TimeoutError, kombu.exceptions.OperationalError)
_MOST_CAUSES = 10
_MOST_CHARACTERS = 300


@dataclass(slots=True, kw_only=True)
class Outage:
    began: float
    suppressed: int = 0


class Outages:
    """The servers that are away, by name. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._away: dict[str, Outage] = {}

    def note(self, service: str) -> bool:
        """Count a message. Return True for the first one of an outage."""
        with self._lock:
            if outage := self._away.get(service):
                outage.suppressed += 1
                return False
            self._away[service] = Outage(began=time.monotonic())
            return True

    def explain(self, record: logging.LogRecord) -> bool:
        """Return whether a record only reports a page answered with 503 during an outage."""
        if not self._away or getattr(record, "status_code", 0) != HTTPStatus.SERVICE_UNAVAILABLE:
            return False
        with self._lock:
            for outage in self._away.values():
                outage.suppressed += 1
        return True

    def probe_servers(self) -> None:
        """Ask each server that is away whether it is back."""
        for service in list(self._away):
            if _ANSWERS[service]():
                with self._lock:
                    outage = self._away.pop(service)
                seconds = time.monotonic() - outage.began
                text = "%s is back after %.0f s; %d messages about it were left out"
                logger.warning(text, service, seconds, outage.suppressed)


outages = Outages()


class OutageFilter(logging.Filter):
    """Drops records about a server that is away, after one line that names it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if outages.explain(record):
            return False
        for error in _iterate_errors(record):
            service = find_failed_service(error)
            if service is None:
                continue
            if outages.note(service):
                message, text = _get_first_line(record.getMessage()), _get_first_line(str(error))
                logger.error("%s does not answer: %s (%s: %s)", service, text, record.name, message)
            return False
        return True


def find_failed_service(error: BaseException) -> str | None:
    """Return the server whose absence caused this error; None for another error."""
    if isinstance(error, _REDIS_AWAY):
        return "Redis"
    if not isinstance(error, psycopg.InterfaceError | psycopg.OperationalError):
        return None
    state = error.sqlstate
    if state is None:
        return "PostgreSQL" if is_away(error) else None
    return "PostgreSQL" if state.startswith(_AWAY_STATES) else None


def is_outage(error: BaseException) -> bool:
    """Return whether a server that is away caused this error or one of its causes."""
    return any(find_failed_service(each) is not None for each in _iterate_causes(error))


def _iterate_errors(record: logging.LogRecord) -> Iterator[BaseException]:
    """Yield the exceptions of a record and their causes."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    error = record.exc_info[1] if record.exc_info else None
    for first in (error, *arguments):
        if isinstance(first, BaseException):
            yield from _iterate_causes(first)


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it, at most _MOST_CAUSES."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _get_first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:_MOST_CHARACTERS]


def _does_postgres_answer() -> bool:
    parameters = connection.get_connection_params()
    try:
        with psycopg.connect(**{**parameters, "autocommit": True}) as session:
            session.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _does_redis_answer() -> bool:
    try:
        connect_redis().ping()
    except redis.RedisError:
        return False
    return True


_ANSWERS: Mapping[str, Callable[[], bool]] = MappingProxyType(
    {"PostgreSQL": _does_postgres_answer, "Redis": _does_redis_answer}
)
