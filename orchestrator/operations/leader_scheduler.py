"""Celery's scheduler with leader election: one of several beats sends the ticks.

If the leader dies, another beat takes over. There is no schedule file: all ticks are seconds apart,
and an additional tick is harmless.
"""

import logging
import time
from typing import Any

from celery.beat import Scheduler
from redis import RedisError

from orchestrator.database.shared_redis import build_redis_key, connect_redis
from orchestrator.dispatch.local_loads import read_local_load_s
from orchestrator.operations.heartbeats import build_process_name
from orchestrator.operations.stuck_threads import MAIN_LOOP

logger = logging.getLogger(__name__)

#: A leader that does not renew its lock for so long has lost it.
HOLD_S = 10
#: Interval at which the leader renews its lock and the others try to take it.
POLL_S = 2.0
#: Celery's scheduler wakes up about a hundred times a second shortly before a tick is due.
SHORTEST_S = 0.1

_RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


class LeaderScheduler(Scheduler):
    """Sends ticks only while it is the leader. A tick that is sent twice is harmless.

    While a load runs on this machine, it sends none.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._holds = False
        self._polled_at = -POLL_S
        self._quiet_until = 0.0
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        MAIN_LOOP.note_turn()
        now = time.monotonic()
        if now - self._polled_at >= POLL_S:
            self._polled_at = now
            self._note(self._take_or_keep())
            self._quiet_until = now + read_local_load_s()
        if not self._holds:
            return POLL_S
        if now < self._quiet_until:
            return min(self._quiet_until - now, POLL_S)
        delay_s = float(super().tick(*args, **kwargs))
        return delay_s if delay_s <= 0 else min(max(delay_s, SHORTEST_S), POLL_S)

    def close(self) -> None:
        """Release the lock, so that the next leader need not wait until it expires."""
        if self._holds:
            try:
                connect_redis().eval(_RELEASE, 1, _build_leader_key(), build_process_name())
            except RedisError as error:
                logger.info("the lock of the ticks is not released and will expire: %s", error)
        super().close()

    def _take_or_keep(self) -> bool:
        redis = connect_redis()
        try:
            if self._holds and redis.eval(
                _RENEW, 1, _build_leader_key(), build_process_name(), HOLD_S
            ):
                return True
            return bool(redis.set(_build_leader_key(), build_process_name(), nx=True, ex=HOLD_S))
        except RedisError:
            # Without Redis no tick arrives anyway.
            return self._holds

    def _note(self, holds: bool) -> None:
        if holds != self._holds:
            logger.info(
                "this beat sends the ticks now" if holds else "another beat sends the ticks"
            )
        self._holds = holds


def _build_leader_key() -> str:
    return build_redis_key("beat")
