"""The Redis that all processes share, and the names that this installation uses there."""

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: A Redis that hangs must not hold up what only counts or looks there.
PATIENCE_S = 0.25


@lru_cache(maxsize=4)
def redis_of(url: str) -> Redis:
    """The server of a broker's address; kombu writes that of a socket in a way of its own."""
    patience: dict[str, Any] = {
        "socket_timeout": PATIENCE_S,
        "socket_connect_timeout": PATIENCE_S,
        # By itself the client tries three times more, with seconds between: a thread waits for it.
        "retry": Retry(NoBackoff(), 0),
    }
    if not url.startswith("redis+socket://"):
        return Redis.from_url(url, **patience)
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    path = unquote(parts.netloc + parts.path)
    return Redis(unix_socket_path=path, db=int(database.strip("/") or 0), **patience)


def name_of(queue: str, what: str) -> str:
    """A key of this installation: two may share a Redis under different queues."""
    return f"pitwall:{queue}:{what}"
