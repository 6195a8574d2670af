"""Rate limits: requests per minute, counted in Redis for all web processes together."""

import logging
import time
from dataclasses import dataclass

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from redis import RedisError

from orchestrator.core.addresses import mask_address
from orchestrator.database.shared_redis import connect_redis

logger = logging.getLogger(__name__)

WINDOW_S = 60
#: After an error of Redis nothing is counted for this time.
REST_S = 5.0
#: The limit of an address for webhooks, as a multiple of a visitor's limit.
HOOKS_OF_AN_ADDRESS = 10
#: Maximum length of a hook's id.
_MOST_HOOK = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The use of a limit in the present minute. `whose` starts a sentence."""

    limit: int
    used: int
    reset_s: int
    whose: str = "this API token"

    @property
    def is_exceeded(self) -> bool:
        return self.used > self.limit

    def set_headers(self, response: HttpResponse) -> None:
        response.headers["RateLimit-Limit"] = str(self.limit)
        response.headers["RateLimit-Remaining"] = str(max(0, self.limit - self.used))
        response.headers["RateLimit-Reset"] = str(self.reset_s)
        if self.is_exceeded:
            response.headers["Retry-After"] = str(self.reset_s)


class _Counter:
    """Counts in fixed windows: one increment per request; the first one sets an expiry."""

    def __init__(self) -> None:
        self._silent_until = 0.0

    def count(self, key: str, limit: int, whose: str) -> Rate | None:
        if time.monotonic() < self._silent_until:
            return None
        now = time.time()
        window = int(now) // WINDOW_S
        name = f"pitwall:rate:{key}:{window}"
        try:
            redis = connect_redis()
            used = int(redis.incr(name))
            if used == 1:
                redis.expire(name, 2 * WINDOW_S)
        except RedisError as error:
            # Accept rather than refuse: the request itself may not need Redis.
            self._silent_until = time.monotonic() + REST_S
            logger.warning("requests are not counted: %s", error)
            return None
        reset_s = WINDOW_S - int(now) % WINDOW_S
        return Rate(limit=limit, used=used, reset_s=reset_s, whose=whose)


_counter = _Counter()


def count(key: str, limit: int, whose: str) -> Rate | None:
    """Count a request; None if `limit` is 0 or Redis does not answer."""
    return _counter.count(key, limit, whose) if limit else None


def count_visitor(request: HttpRequest) -> Rate | None:
    """Count a request without a session or a valid token, by the client's address.

    Only the configured proxies are trusted to report it.
    """
    return count(
        f"address:{_mask_client_address(request)}",
        settings.VISITOR_REQUESTS_A_MINUTE,
        "your address",
    )


def count_hook(request: HttpRequest, hook: str) -> Rate | None:
    """Count a request to a webhook: each hook has the limit of a visitor.

    An address has more, since a forge sends webhooks of many projects from few addresses.
    """
    limit = settings.VISITOR_REQUESTS_A_MINUTE
    rate = count(
        f"hooks-of:{_mask_client_address(request)}", HOOKS_OF_AN_ADDRESS * limit, "your address"
    )
    if rate is None or rate.is_exceeded:
        return rate
    return count(f"hook:{hook[:_MOST_HOOK]}", limit, "this webhook")


def _mask_client_address(request: HttpRequest) -> str:
    return mask_address(get_adapter().get_client_ip(request))


def count_session(user: object) -> Rate | None:
    return count(f"user:{user}", settings.SESSION_REQUESTS_A_MINUTE, "your account")
