"""Which threads handle a request, and how many requests may wait for them."""

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from orchestrator.core.addresses import is_loopback
from orchestrator.serving.shares import MOST_PROBES, Share

#: Each has a thread of its own, so that none is delayed by requests or by the others.
PROBES = (b"/healthz", b"/readyz", b"/metrics")


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads, and the places of those that they handle or that wait for them."""

    pool: Executor
    places: Share


class Lanes:
    """`pool` and `places` are of all requests but probes."""

    def __init__(self, pool: Executor, places: Share) -> None:
        self.requests = Lane(pool, places)
        pools = {path: ThreadPoolExecutor(max_workers=1) for path in PROBES}
        self._probes = {path: Lane(pool, Share(MOST_PROBES)) for path, pool in pools.items()}
        self._own_probes = {path: Lane(pool, Share(MOST_PROBES)) for path, pool in pools.items()}

    def lane_for(self, path: bytes, owner: str) -> Lane:
        """Of a request whose body is short. Strangers take no place from the health check of this
        machine."""
        probes = self._own_probes if is_loopback(owner) else self._probes
        return probes.get(path, self.requests)

    def shutdown(self) -> None:
        for lane in (self.requests, *self._probes.values()):
            lane.pool.shutdown(wait=False, cancel_futures=True)
