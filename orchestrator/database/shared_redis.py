"""The Redis of the settings, and the keys of this installation in it."""

from django.conf import settings
from redis import Redis

from orchestrator.database.redis_server import build_key_name, connect_redis_server


def connect_redis() -> Redis:
    return connect_redis_server(settings.CELERY_BROKER_URL)


def build_redis_key(what: str) -> str:
    return build_key_name(settings.CELERY_TASK_DEFAULT_QUEUE, what)
