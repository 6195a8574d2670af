"""Messages that start a task before its next tick."""

import logging

from celery import current_app
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

#: Within this time a worker that is starting or busy takes a message; then a tick follows.
EXPIRES_S = 20


def send_task(name: str, *words: str, queue: str | None = None) -> None:
    """Send a message to the workers of `queue` (default: all). Without a broker the next tick
    starts the task."""
    try:
        current_app.send_task(name, args=words, queue=queue, expires=EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning("the task %s was not started: %s", name, error)
