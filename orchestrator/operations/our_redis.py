"""The Redis of the settings, and the keys of this installation in it."""

from django.conf import settings
from redis import Redis

from orchestrator.operations.redis_server import name_of, redis_of


def our_redis() -> Redis:
    return redis_of(settings.CELERY_BROKER_URL)


def our_key(what: str) -> str:
    return name_of(settings.CELERY_TASK_DEFAULT_QUEUE, what)
