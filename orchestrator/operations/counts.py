"""Counters of all processes (web and workers, on any machine), added up in a hash of Redis.

They start at zero again when Redis loses them, as Prometheus's counters do when a process restarts.
Readers therefore look at rates.
"""

import json
from typing import Any

from redis import RedisError

from orchestrator.core.counting import Key, drain, restore_counts
from orchestrator.database.shared_redis import build_redis_key, connect_redis


def flush_counts() -> None:
    """Add the counts of this process to Redis. If Redis raises RedisError, no count is lost."""
    counted = drain()
    if not counted:
        return
    try:
        with connect_redis().pipeline(transaction=True) as pipe:
            for (name, labels), amount in counted.items():
                pipe.hincrbyfloat(_hash(), json.dumps([name, labels]), amount)
            pipe.execute()
    except RedisError:
        restore_counts(counted)
        raise


def load_counts() -> dict[Key, float]:
    """Return the counts of all processes. Raise RedisError if Redis does not answer."""
    rows: Any = connect_redis().hgetall(_hash())
    return {_parse_key(field): float(value) for field, value in rows.items()}


def _parse_key(field: bytes) -> Key:
    name, labels = json.loads(field)
    return name, tuple((label, value) for label, value in labels)


def _hash() -> str:
    return build_redis_key("counts")
