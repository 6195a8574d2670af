"""Messages that wake workers. A task that already waits in its queue is not sent again.

A key in Redis marks each task that was sent and has not begun. `begin_task` removes it before the
task reads the database, so a wake-up after that sends another message.
"""

import logging
from collections.abc import Sequence

from celery import current_app
from kombu.exceptions import OperationalError
from redis import RedisError

from orchestrator.database.shared_redis import build_redis_key, connect_redis

logger = logging.getLogger(__name__)

#: Within this time a worker that is starting or busy takes a message; then a tick follows.
EXPIRES_S = 20


def send_task(name: str, *words: str) -> None:
    """Wake the workers of a task. Without a broker the next tick starts the task."""
    try:
        if _mark_waiting(name, words):
            current_app.send_task(name, args=words, expires=EXPIRES_S, retry=False)
    except (OperationalError, RedisError) as error:
        logger.warning("the task %s was not started: %s", name, error)


def send_task_later(name: str, *words: str, in_s: float) -> None:
    """Wake the workers of a task after `in_s` seconds."""
    try:
        current_app.send_task(
            name, args=words, countdown=in_s, expires=in_s + EXPIRES_S, retry=False
        )
    except OperationalError as error:
        logger.warning("the task %s was not started: %s", name, error)


def begin_task(name: str, words: Sequence[object]) -> None:
    """Note that a task begins. Without Redis its mark expires."""
    try:
        connect_redis().delete(_build_mark(name, words))
    except RedisError as error:
        logger.warning("the mark of the task %s remains: %s", name, error)


def _mark_waiting(name: str, words: Sequence[str]) -> bool:
    """Return False if the task waits in its queue already."""
    return bool(connect_redis().set(_build_mark(name, words), 1, nx=True, ex=EXPIRES_S))


def _build_mark(name: str, words: Sequence[object]) -> str:
    return build_redis_key(f"waits:{':'.join((name, *map(str, words)))}")
