"""Loads on this machine: beat sends no ticks while one runs, because each tick uses CPU time."""

import logging

from redis import RedisError

from orchestrator.database.shared_redis import build_redis_key, connect_redis

logger = logging.getLogger(__name__)

#: Ticks are missed for at most this time; they find what a lost wake-up message left.
MOST_S = 30.0


def announce_local_load(seconds: float) -> None:
    """Let beat send no ticks for this time, but for at most MOST_S."""
    try:
        milliseconds = int(1000 * min(seconds, MOST_S))
        connect_redis().set(_build_key(), 1, px=max(1, milliseconds))
    except RedisError as error:
        logger.info("the ticks go on during a load on this machine: %s", error)


def read_local_load_s() -> float:
    """Return for how long a load on this machine still runs; 0 without one, or without Redis."""
    try:
        milliseconds: int = connect_redis().pttl(_build_key())
    except RedisError:
        return 0.0
    return max(0.0, milliseconds / 1000)


def _build_key() -> str:
    return build_redis_key("local-load")
