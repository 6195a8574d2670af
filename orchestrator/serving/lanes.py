"""Which threads handle a request, and how many requests may wait for them."""

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

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
        self._probes: Mapping[bytes, Lane] = {
            path: Lane(ThreadPoolExecutor(max_workers=1), Share(MOST_PROBES)) for path in PROBES
        }

    def lane_for(self, path: bytes) -> Lane:
        return self._probes.get(path, self.requests)

    def shutdown(self) -> None:
        for lane in (self.requests, *self._probes.values()):
            lane.pool.shutdown(wait=False, cancel_futures=True)
