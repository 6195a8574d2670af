"""Telling the engine that there is something to do, without waiting for its next tick."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def wake_engine() -> None:
    """Sends a tick once the transaction is through. Without a broker the next tick does it."""
    transaction.on_commit(_send)


def _send() -> None:
    try:
        current_app.send_task("orchestrator.dispatch.tasks.pump", expires=2, retry=False)
    except OperationalError as error:
        logger.warning("the engine was not woken: %s", error)
