"""The counts of all processes together, in a hash of Redis: web, workers, on any machine.

They begin anew when Redis forgets them, as counters do when a process restarts: whoever reads them
looks at how they grow.
"""

import json
from typing import Any

from redis import RedisError

from orchestrator.core.counting import Key, drain, put_back
from orchestrator.operations.our_redis import our_key, our_redis


def hand_on() -> None:
    """Adds what this process counted; RedisError where it cannot, and nothing is lost."""
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
    """RedisError where nobody can be asked."""
    rows: Any = our_redis().hgetall(_hash())
    return {_key(field): float(value) for field, value in rows.items()}


def _key(field: bytes) -> Key:
    name, labels = json.loads(field)
    return name, tuple((label, value) for label, value in labels)


def _hash() -> str:
    return our_key("counts")
