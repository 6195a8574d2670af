"""Heartbeats of workers and beats, stored in Redis by the clock of Redis.

This module must not import Django: the health check of a container uses it too.
"""

import os
import socket
from dataclasses import dataclass
from typing import Any

from redis import Redis

from orchestrator.database.redis_server import build_key_name

#: Seconds between two heartbeats of a process.
EVERY_S = 10.0
#: After this time without a heartbeat a process is considered dead.
LATE_S = 30.0
#: After this time its last heartbeat is deleted.
FORGET_S = 600
KINDS = ("beat", "worker", "background")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The last heartbeat of a process. `kind`: one of KINDS; `name`: machine and process id."""

    kind: str
    name: str
    seconds_ago: float

    @property
    def is_alive(self) -> bool:
        return self.seconds_ago <= LATE_S

    @property
    def machine(self) -> str:
        return self.name.rpartition(":")[0]


def build_process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def record_heartbeat(redis: Redis, queue: str, kind: str, name: str) -> None:
    """Store a heartbeat. Raise RedisError if Redis does not answer."""
    now = _read_redis_time(redis)
    key = build_key_name(queue, "heartbeats")
    with redis.pipeline(transaction=False) as pipe:
        pipe.zadd(key, {f"{kind} {name}": now})
        pipe.zremrangebyscore(key, 0, now - FORGET_S)
        pipe.execute()


def load_heartbeats(redis: Redis, queue: str) -> list[Heartbeat]:
    """Return the processes that sent a heartbeat within FORGET_S, newest first.

    Raise RedisError if Redis does not answer.
    """
    now = _read_redis_time(redis)
    rows: Any = redis.zrevrange(build_key_name(queue, "heartbeats"), 0, -1, withscores=True)
    heartbeats = []
    for member, at in rows:
        kind, _, name = member.decode().partition(" ")
        heartbeats.append(Heartbeat(kind=kind, name=name, seconds_ago=max(0.0, now - at)))
    return heartbeats


def delete_heartbeat(redis: Redis, queue: str, kind: str, name: str) -> None:
    """Delete the heartbeat of a process that ends in order."""
    redis.zrem(build_key_name(queue, "heartbeats"), f"{kind} {name}")


def _read_redis_time(redis: Redis) -> float:
    time: Any = redis.time()
    seconds, micros = time
    return float(seconds) + micros / 1e6
