"""The threads that handle requests, and how many requests may wait for them."""

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from orchestrator.core.addresses import is_loopback
from orchestrator.serving.shares import MOST_PROBES, Share

#: Each probe has a separate thread, so that neither requests nor other probes delay it.
PROBES = (b"/healthz", b"/readyz", b"/metrics")


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads, and places for the requests that they handle or that wait for them."""

    pool: Executor
    places: Share


class Lanes:
    """`pool` and `places` are for all requests except probes."""

    def __init__(self, pool: Executor, places: Share) -> None:
        self.requests = Lane(pool, places)
        pools = {path: ThreadPoolExecutor(max_workers=1) for path in PROBES}
        self._probes = {path: Lane(pool, Share(MOST_PROBES)) for path, pool in pools.items()}
        self._own_probes = {path: Lane(pool, Share(MOST_PROBES)) for path, pool in pools.items()}

    def lane_for(self, path: bytes, owner: str) -> Lane:
        """Return the lane of a request with a short body.

        Strangers take no place from the health check of this machine.
        """
        probes = self._own_probes if is_loopback(owner) else self._probes
        return probes.get(path, self.requests)

    def shutdown(self) -> None:
        for lane in (self.requests, *self._probes.values()):
            lane.pool.shutdown(wait=False, cancel_futures=True)
