"""The share of a worker's threads per team: slow hosts of one team cannot use all of them."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from django.conf import settings

#: A team may use this share of the threads that other teams leave.
SHARE = 3 / 4


class TeamShares:
    """Counts the threads of this process that work for each team."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._held: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, team: Hashable) -> Iterator[bool]:
        """Yield whether the team may use one more thread; if so, count it for the block."""
        admitted = self._take(team)
        try:
            yield admitted
        finally:
            if admitted:
                self._release(team)

    def _take(self, team: Hashable) -> bool:
        with self._lock:
            others = self._held.total() - self._held[team]
            most = max(1, int((self._threads - others) * SHARE))
            if self._held[team] >= most:
                return False
            self._held[team] += 1
            return True

    def _release(self, team: Hashable) -> None:
        with self._lock:
            self._held[team] -= 1
            if not self._held[team]:
                del self._held[team]


#: The shares of this process: of a worker of steps, and of one of background tasks.
SHARES = TeamShares(settings.CELERY_WORKER_CONCURRENCY)
BACKGROUND_SHARES = TeamShares(settings.BACKGROUND_SLOTS)
