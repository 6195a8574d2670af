"""How many requests a token may make a minute, counted in Redis for all web processes at once."""

import logging
import time
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from redis import RedisError

from orchestrator.operations.our_redis import our_redis

logger = logging.getLogger(__name__)

WINDOW_S = 60
#: So long after a failure nothing is counted.
REST_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Where a token stands in its present minute."""

    limit: int
    used: int
    reset_s: int

    @property
    def is_exceeded(self) -> bool:
        return self.used > self.limit

    def tell(self, response: HttpResponse) -> None:
        response.headers["RateLimit-Limit"] = str(self.limit)
        response.headers["RateLimit-Remaining"] = str(max(0, self.limit - self.used))
        response.headers["RateLimit-Reset"] = str(self.reset_s)
        if self.is_exceeded:
            response.headers["Retry-After"] = str(self.reset_s)


class TooManyRequestsError(Exception):
    """A token has used up its minute."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(
            f"this API token may make {rate.limit} requests a minute; "
            f"go on in {rate.reset_s} s, and ask less often, such as with ?wait="
        )
        self.rate = rate


class _Counter:
    """Fixed windows: one increment a request, and an expiry with the first of each."""

    def __init__(self) -> None:
        self._silent_until = 0.0

    def count(self, token: UUID, limit: int) -> Rate | None:
        if time.monotonic() < self._silent_until:
            return None
        now = time.time()
        window = int(now) // WINDOW_S
        key = f"pitwall:rate:{token.hex}:{window}"
        try:
            redis = our_redis()
            used = int(redis.incr(key))
            if used == 1:
                redis.expire(key, 2 * WINDOW_S)
        except RedisError as error:
            # Better uncounted than refused: what is asked for needs no Redis.
            self._silent_until = time.monotonic() + REST_S
            logger.warning("requests are not counted: %s", error)
            return None
        return Rate(limit=limit, used=used, reset_s=WINDOW_S - int(now) % WINDOW_S)


_counter = _Counter()


def count_request(token: UUID) -> Rate | None:
    """Counts one; None where nothing is limited, and while there is no Redis."""
    limit = settings.API_REQUESTS_A_MINUTE
    return _counter.count(token, limit) if limit else None
