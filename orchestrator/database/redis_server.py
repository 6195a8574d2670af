"""The Redis that all processes share, and the names of this installation's keys in it."""

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: Timeout for counters and look-ups: a Redis that hangs must not hold them up.
PATIENCE_S = 0.25


@lru_cache(maxsize=4)
def connect_redis_server(url: str) -> Redis:
    """Return a client for a broker's address. kombu has a special form for addresses of sockets."""
    patience: dict[str, Any] = {
        "socket_timeout": PATIENCE_S,
        "socket_connect_timeout": PATIENCE_S,
        # By default the client retries three times with seconds between, while a thread waits.
        "retry": Retry(NoBackoff(), 0),
    }
    if not url.startswith("redis+socket://"):
        return Redis.from_url(url, **patience)
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    path = unquote(parts.netloc + parts.path)
    return Redis(unix_socket_path=path, db=int(database.strip("/") or 0), **patience)


def build_key_name(queue: str, what: str) -> str:
    """Return a key of this installation. Two may share a Redis if their queues differ."""
    return f"pitwall:{queue}:{what}"
