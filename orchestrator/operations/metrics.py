"""The text of `/metrics`: the present state of the database, Redis and the processes.

Every process answers for all of them, because Prometheus scrapes one address.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from redis import Redis, RedisError

from orchestrator.database.shared_redis import connect_redis
from orchestrator.operations import heartbeats
from orchestrator.operations.counts import flush_counts, load_counts
from orchestrator.operations.exposition import Labels, group_counts, render_exposition
from orchestrator.operations.families import FAMILIES, Family
from orchestrator.operations.gauges import Samples, load_database_gauges


def render_metrics() -> str:
    """Return the metrics in Prometheus's format.

    A part that does not answer is left out, and its `pitwall_up` is 0.
    """
    samples: dict[str, Samples] = {}
    up: dict[Labels, float] = {}
    for part, ask in (("database", load_database_gauges), ("redis", _load_redis_samples)):
        try:
            samples.update(ask())
            up[(("part", part),)] = 1.0
        except (DatabaseError, RedisError):
            up[(("part", part),)] = 0.0
    samples["pitwall_up"] = up
    return render_exposition(_fill_families(samples))


def _fill_families(samples: Mapping[str, Samples]) -> list[Family]:
    return [replace(family, samples=samples.get(name, {})) for name, family in FAMILIES.items()]


def _load_redis_samples() -> dict[str, Samples]:
    flush_counts()
    return {**group_counts(load_counts()), **_load_process_gauges()}


def _load_process_gauges() -> dict[str, Samples]:
    redis = connect_redis()
    queue = settings.CELERY_TASK_DEFAULT_QUEUE
    known = heartbeats.load_heartbeats(redis, queue)
    alive: dict[Labels, float] = {}
    last: dict[Labels, float] = {}
    for kind in heartbeats.KINDS:
        label = (("process", kind),)
        ours = [each for each in known if each.kind == kind]
        alive[label] = float(sum(each.is_alive for each in ours))
        if ours:
            last[label] = min(each.seconds_ago for each in ours)
    return {
        "pitwall_processes": alive,
        "pitwall_heartbeat_age_seconds": last,
        "pitwall_broker_messages": _count_messages(redis),
    }


def _count_messages(redis: Redis) -> dict[Labels, float]:
    """Return the waiting messages of each queue, named by what its tasks do."""
    names = {
        "steps": settings.CELERY_TASK_DEFAULT_QUEUE,
        "background": settings.BACKGROUND_QUEUE,
        "fetches": settings.FETCH_QUEUE,
    }
    lengths: dict[str, Any] = {name: redis.llen(queue) for name, queue in names.items()}
    return {(("queue", name),): float(length) for name, length in lengths.items()}
