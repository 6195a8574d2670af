"""When each worker and beat was heard last, kept in Redis by Redis's own clock.

Needs no Django: the health check of a container asks it too.
"""

import os
import socket
from dataclasses import dataclass
from typing import Any

from redis import Redis

from orchestrator.operations.redis_server import name_of

#: A living process says so at least this often.
EVERY_S = 5.0
#: Who was silent for so long is taken for dead.
LATE_S = 30.0
#: And is forgotten after so long.
FORGET_S = 600
KINDS = ("beat", "worker", "fetcher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A process, one of KINDS, by its machine's name and its number there."""

    kind: str
    name: str
    seconds_ago: float

    @property
    def is_alive(self) -> bool:
        return self.seconds_ago <= LATE_S

    @property
    def machine(self) -> str:
        return self.name.rpartition(":")[0]


def own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def note_heard(redis: Redis, queue: str, kind: str, name: str) -> None:
    """RedisError where it cannot be said."""
    now = _now(redis)
    key = name_of(queue, "heard")
    with redis.pipeline(transaction=False) as pipe:
        pipe.zadd(key, {f"{kind} {name}": now})
        pipe.zremrangebyscore(key, 0, now - FORGET_S)
        pipe.execute()


def heard(redis: Redis, queue: str) -> list[Heard]:
    """Who was heard within FORGET_S, the last one first; RedisError where nobody can be asked."""
    now = _now(redis)
    rows: Any = redis.zrevrange(name_of(queue, "heard"), 0, -1, withscores=True)
    found = []
    for member, at in rows:
        kind, _, name = member.decode().partition(" ")
        found.append(Heard(kind=kind, name=name, seconds_ago=max(0.0, now - at)))
    return found


def forget(redis: Redis, queue: str, kind: str, name: str) -> None:
    """A process that ends in order is not missed."""
    redis.zrem(name_of(queue, "heard"), f"{kind} {name}")


def _now(redis: Redis) -> float:
    told: Any = redis.time()
    seconds, micros = told
    return float(seconds) + micros / 1e6
