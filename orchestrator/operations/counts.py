"""Counters of all processes (web and workers, on any machine), added up in a hash of Redis.

They start at zero again when Redis loses them, as Prometheus's counters do when a process restarts.
Readers therefore look at rates.
"""

import json
from typing import Any

from redis import RedisError

from orchestrator.core.counting import Key, drain, put_back
from orchestrator.operations.our_redis import our_key, our_redis


def hand_on() -> None:
    """Add the counts of this process to Redis. If Redis raises RedisError, no count is lost."""
    counted = drain()
    if not counted:
        return
    try:
        with our_redis().pipeline(transaction=True) as pipe:
            for (name, labels), amount in counted.items():
                pipe.hincrbyfloat(_hash(), json.dumps([name, labels]), amount)
            pipe.execute()
    except RedisError:
        put_back(counted)
        raise


def all_counts() -> dict[Key, float]:
    """Return the counts of all processes. Raise RedisError if Redis does not answer."""
    rows: Any = our_redis().hgetall(_hash())
    return {_key(field): float(value) for field, value in rows.items()}


def _key(field: bytes) -> Key:
    name, labels = json.loads(field)
    return name, tuple((label, value) for label, value in labels)


def _hash() -> str:
    return our_key("counts")
