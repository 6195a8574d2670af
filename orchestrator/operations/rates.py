"""How many requests somebody makes in a minute, counted in Redis for all web processes at once."""

import logging
import time
from dataclasses import dataclass

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from redis import RedisError

from orchestrator.core.addresses import network_of
from orchestrator.operations.our_redis import our_redis

logger = logging.getLogger(__name__)

WINDOW_S = 60
#: So long after a failure nothing is counted.
REST_S = 5.0
#: How many times the rate of a visitor an address has for webhooks.
HOOKS_OF_AN_ADDRESS = 10
#: Characters of a hook's id.
_MOST_HOOK = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Where somebody stands in the present minute; `whose` begins a sentence."""

    limit: int
    used: int
    reset_s: int
    whose: str = "this API token"

    @property
    def is_exceeded(self) -> bool:
        return self.used > self.limit

    def tell(self, response: HttpResponse) -> None:
        response.headers["RateLimit-Limit"] = str(self.limit)
        response.headers["RateLimit-Remaining"] = str(max(0, self.limit - self.used))
        response.headers["RateLimit-Reset"] = str(self.reset_s)
        if self.is_exceeded:
            response.headers["Retry-After"] = str(self.reset_s)


class _Counter:
    """Fixed windows: one increment a request, and an expiry with the first of each."""

    def __init__(self) -> None:
        self._silent_until = 0.0

    def count(self, key: str, limit: int, whose: str) -> Rate | None:
        if time.monotonic() < self._silent_until:
            return None
        now = time.time()
        window = int(now) // WINDOW_S
        name = f"pitwall:rate:{key}:{window}"
        try:
            redis = our_redis()
            used = int(redis.incr(name))
            if used == 1:
                redis.expire(name, 2 * WINDOW_S)
        except RedisError as error:
            # Better uncounted than refused: what is asked for needs no Redis.
            self._silent_until = time.monotonic() + REST_S
            logger.warning("requests are not counted: %s", error)
            return None
        reset_s = WINDOW_S - int(now) % WINDOW_S
        return Rate(limit=limit, used=used, reset_s=reset_s, whose=whose)


_counter = _Counter()


def count(key: str, limit: int, whose: str) -> Rate | None:
    """Counts a request; None where `limit` is 0, and while there is no Redis."""
    return _counter.count(key, limit, whose) if limit else None


def count_visitor(request: HttpRequest) -> Rate | None:
    """Counts a request without a session or a valid token, by the address that our own proxies
    saw."""
    return count(f"address:{_network(request)}", settings.VISITOR_REQUESTS_A_MINUTE, "your address")


def count_hook(request: HttpRequest, hook: str) -> Rate | None:
    """Counts a request to a webhook: as many as a visitor's for each hook. A forge sends those of
    many projects from few addresses: an address has more."""
    limit = settings.VISITOR_REQUESTS_A_MINUTE
    rate = count(f"hooks-of:{_network(request)}", HOOKS_OF_AN_ADDRESS * limit, "your address")
    if rate is None or rate.is_exceeded:
        return rate
    return count(f"hook:{hook[:_MOST_HOOK]}", limit, "this webhook")


def _network(request: HttpRequest) -> str:
    return network_of(get_adapter().get_client_ip(request))


def count_session(user: object) -> Rate | None:
    return count(f"user:{user}", settings.SESSION_REQUESTS_A_MINUTE, "your account")
