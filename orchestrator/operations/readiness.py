"""Whether this web process can serve pages, and whether the engine works."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.conf import settings
from django.db import DatabaseError, connection
from redis import RedisError

from orchestrator.archives.database.state import find_pending_migrations
from orchestrator.database.shared_redis import connect_redis
from orchestrator.operations import heartbeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part that is checked.

    `needed`: no page works without it. `problem`: empty if all is well.
    """

    name: str
    needed: bool
    problem: str = ""


#: Everybody may ask, so the database and Redis are asked at most once in this time.
RECENT_S = 1.0

_migrated = False
_lock = threading.Lock()
_recent: tuple[float, list[Part]] | None = None


def load_recent_parts() -> list[Part]:
    """Return `parts`, at most RECENT_S old. Only one thread asks at a time."""
    global _recent
    with _lock:
        if _recent is None or time.monotonic() - _recent[0] >= RECENT_S:
            parts = check_parts()
            _recent = time.monotonic(), parts
        return _recent[1]


def check_parts() -> list[Part]:
    """Check all parts. A later part depends on earlier ones."""
    return [
        Part(name=name, needed=name not in heartbeats.KINDS, problem=ask())
        for name, ask in _PARTS.items()
    ]


def _check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer"
    return ""


def _check_migrations() -> str:
    """Return what is missing.

    After success it is not asked again: nobody reverts one at run time.
    """
    global _migrated
    if not _migrated:
        try:
            waiting = find_pending_migrations()
        except DatabaseError:
            return "unknown: the database does not answer"
        if waiting:
            return f"{len(waiting)} not applied: manage.py migrate"
        _migrated = True
    return ""


def _check_redis() -> str:
    try:
        connect_redis().ping()
    except RedisError:
        return "does not answer"
    return ""


def _find_heartbeat_problem(kind: str) -> str:
    redis = connect_redis()
    try:
        known = heartbeats.load_heartbeats(redis, settings.CELERY_TASK_DEFAULT_QUEUE)
    except RedisError:
        return "unknown: Redis does not answer"
    if any(each.kind == kind and each.is_alive for each in known):
        return ""
    return f"none sent a heartbeat within {heartbeats.LATE_S:.0f} s"


_PARTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "database": _check_database,
        "migrations": _check_migrations,
        "redis": _check_redis,
        "worker": lambda: _find_heartbeat_problem("worker"),
        "background": lambda: _find_heartbeat_problem("background"),
        "beat": lambda: _find_heartbeat_problem("beat"),
    }
)
