"""The text of `/metrics`: the present state of the database, Redis and the processes.

Every process answers for all of them, because Prometheus scrapes one address.
"""

from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings
from django.db import DatabaseError
from redis import RedisError

from orchestrator.operations import heartbeats
from orchestrator.operations.counts import all_counts, hand_on
from orchestrator.operations.exposition import Labels, exposition, grouped
from orchestrator.operations.families import FAMILIES, Family
from orchestrator.operations.gauges import Samples, database_figures
from orchestrator.operations.our_redis import our_redis


def metrics_text() -> str:
    """Return the metrics in Prometheus's format.

    A part that does not answer is left out, and its `pitwall_up` is 0.
    """
    found: dict[str, Samples] = {}
    up: dict[Labels, float] = {}
    for part, ask in (("database", database_figures), ("redis", _redis_figures)):
        try:
            found.update(ask())
            up[(("part", part),)] = 1.0
        except (DatabaseError, RedisError):
            up[(("part", part),)] = 0.0
    found["pitwall_up"] = up
    return exposition(_filled(found))


def _filled(found: Mapping[str, Samples]) -> list[Family]:
    return [replace(family, samples=found.get(name, {})) for name, family in FAMILIES.items()]


def _redis_figures() -> dict[str, Samples]:
    hand_on()
    return {**grouped(all_counts()), **_processes()}


def _processes() -> dict[str, Samples]:
    redis = our_redis()
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
        "pitwall_broker_messages": {(): float(redis.llen(queue))},
    }
