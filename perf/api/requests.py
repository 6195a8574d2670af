"""The requests, in turns with a bare view, and their times in the server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from statistics import median
from uuid import uuid4

from orchestrator.api.rate_limits import count_request
from perf.api.dataset import ROUNDS, Dataset
from perf.harness.web_servers import Server
from perf.scale.http_clients import Connection, Request

BARE = "bare view"
SHOW, SHOW_QUEUED, AGAIN, LIST = "read a run", "read a queued run", "read again: 304", "list runs"
START, REPEAT = "start 200 cases", "start, same key"
#: Slow requests are sent less often.
SELDOM = {START: 5}


def make_requests(dataset: Dataset, tag: str) -> Mapping[str, Iterator[Request]]:
    """Return endless requests by name; `tag` is the entity tag of the finished run."""
    headers = {"Authorization": f"Bearer {dataset.token}"}
    run = f"/api/v1/runs/{dataset.finished}"

    def read(path: str, **more: str) -> Iterator[Request]:
        status = 304 if more else 200
        return cycle([Request(path=path, headers={**headers, **more}, status=status)])

    return {
        SHOW: read(run),
        SHOW_QUEUED: read(f"/api/v1/runs/{dataset.queued}"),
        AGAIN: read(run, **{"If-None-Match": tag}),
        LIST: read("/api/v1/runs?limit=20"),
        START: _iterate_starts(headers, dataset.shas[0], dataset.shas[1]),
        REPEAT: _iterate_repeats(headers, dataset),
    }


def fetch_entity_tag(server: Server, dataset: Dataset) -> str:
    """Return the entity tag of the finished run."""
    connection = Connection(server.port)
    headers = {"Authorization": f"Bearer {dataset.token}"}
    answer = connection.answer(Request(path=f"/api/v1/runs/{dataset.finished}", headers=headers))
    connection.close()
    return answer.headers["ETag"]


class TimedRequests:
    """Seconds in the server, by the kind of request."""

    def __init__(self, site: Server, bare: Server, dataset: Dataset) -> None:
        self._servers = {BARE: bare}
        self._requests: dict[str, Iterator[Request]] = {BARE: cycle([Request(path="/")])}
        for name, endless in make_requests(dataset, fetch_entity_tag(site, dataset)).items():
            self._servers[name], self._requests[name] = site, endless
        self.timings_ms: dict[str, list[float]] = {name: [] for name in self._requests}

    def warm_up(self) -> None:
        """Send each request to each worker, so that caches and connections are filled."""
        for name in self._requests:
            self._ask(name, 4)

    def round(self, count: int) -> None:
        """Send each kind of request once, with the bare view among them."""
        for name in self._requests:
            self.timings_ms[name] += self._ask(name, max(1, count // SELDOM.get(name, 1)))

    def _ask(self, name: str, count: int) -> list[float]:
        server = self._servers[name]
        connection = Connection(server.port)
        for request in islice(self._requests[name], count):
            connection.ask(request)
        connection.close()
        return server.served_s(count)


def measure_counting_s(count: int) -> float:
    """Return the median seconds that counting a request takes."""
    token, seconds = uuid4(), []
    for _ in range(count):
        began = time.perf_counter()
        if count_request(token) is None:
            raise RuntimeError("nothing was counted: is there a Redis?")
        seconds.append(time.perf_counter() - began)
    return median(seconds)


def _iterate_starts(headers: Mapping[str, str], baseline: str, contender: str) -> Iterator[Request]:
    body = _build_body(baseline, contender)
    kept = {**headers, "Content-Type": "application/json"}
    while True:
        yield Request(
            path="/api/v1/runs",
            headers={**kept, "Idempotency-Key": str(uuid4())},
            body=body,
            status=201,
        )


def _iterate_repeats(headers: Mapping[str, str], dataset: Dataset) -> Iterator[Request]:
    """The first request creates a run; the others get the same run."""
    kept = {**headers, "Content-Type": "application/json", "Idempotency-Key": "the same"}
    body = _build_body(dataset.shas[0], dataset.shas[1])
    yield Request(path="/api/v1/runs", headers=kept, body=body, status=201)
    while True:
        yield Request(path="/api/v1/runs", headers=kept, body=body)


def _build_body(baseline: str, contender: str) -> bytes:
    wanted = {"baseline": baseline, "contenders": [contender], "hosts": ["here"]}
    return json.dumps({"benchmark": "hello", "rounds": ROUNDS, **wanted}).encode()
