"""The cost of pages at every size, in turns with a bare view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from statistics import median, quantiles
from urllib.parse import urlencode

from perf.harness.processes import sum_tree_cpu_s
from perf.harness.web_servers import Server
from perf.scale.databases import Postgres
from perf.scale.http_clients import Request, ask_many
from perf.scale.loading import Dataset

BARE = Request(path="/")
#: Number of addresses for the measurement of repeated requests.
AGAIN = 2
#: One of so many requests is also sent by one client alone.
ALONE_SHARE = 4


@dataclass(slots=True, kw_only=True)
class Cost:
    """The cost of one page: seconds in the server and at the client, request by request.

    Medians are those of the client, because the same clients request the bare view.
    """

    served_s: list[float] = field(default_factory=list)
    seen_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    wire_bytes: int = 0

    @property
    def p95_s(self) -> float:
        return quantiles(self.served_s, n=20)[-1] if len(self.served_s) > 1 else self.served_s[0]

    @property
    def median_s(self) -> float:
        return median(self.seen_s)

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / len(self.served_s)


@dataclass(slots=True, kw_only=True)
class PageComparison:
    """A page and the bare view in the same minutes.

    `alone`: the page from one client, so that no request waits for a CPU. The limit on slow
    requests applies to its time in the server.
    """

    page: Cost = field(default_factory=Cost)
    bare: Cost = field(default_factory=Cost)
    alone: Cost = field(default_factory=Cost)

    @property
    def ratio(self) -> float:
        return self.page.median_s / self.bare.median_s

    @property
    def cpu_ratio(self) -> float:
        return self.page.cpu_ms / self.bare.cpu_ms if self.bare.cpu_ms else 0.0


def build_requests(dataset: Dataset) -> Mapping[str, Iterator[Request]]:
    """Return endless requests with the session of a browser.

    Histories and comparisons use another series or pair of commits each time, as long as there are
    others. Separate rows measure repeated requests, as from users of one link, and leaderboards of
    other commits.
    """
    headers = {"Cookie": f"sessionid={dataset.session}", "Accept-Encoding": "gzip"}
    key = f"{dataset.project}/{dataset.benchmark}"

    def cycle_requests(paths: Iterable[str]) -> Iterator[Request]:
        return cycle([Request(path=path, headers=headers) for path in paths])

    data = [f"/history/{number}/data" for number, _, _ in dataset.series]
    histories = [_build_history_path(key, dataset.host, *each[1:]) for each in dataset.series]
    comparisons = [_compare(key, *pair) for pair in pairwise(dataset.full)]
    return {
        "history data": cycle_requests(data),
        "history data seen before": cycle_requests(data[-AGAIN:]),
        "history page": cycle_requests(histories),
        "history page seen before": cycle_requests(histories[-AGAIN:]),
        "comparison": cycle_requests(comparisons),
        "comparison seen before": cycle_requests(comparisons[-AGAIN:]),
        "overview": cycle_requests(["/"]),
        "overview of a project": cycle_requests([f"/?project={dataset.project}"]),
        "leaderboard": cycle_requests(["/reports/leaderboard/"]),
        "leaderboards of other commits": cycle_requests(
            f"/reports/leaderboard/?commit={sha[:12]}" for sha in dataset.full
        ),
        "run list": cycle_requests(["/runs/"]),
    }


def _build_history_path(benchmark: str, host: str, case: str, metric: str) -> str:
    query = {"benchmark": benchmark, "case": case, "host": host, "metric": metric}
    return f"/history/?{urlencode(query)}"


def _compare(benchmark: str, contender: str, baseline: str) -> str:
    query = {"benchmark": benchmark, "baseline": baseline, "contender": contender}
    return f"/compare/?{urlencode(query)}"


class PageTimings:
    """All pages of all sizes, the bare view before each."""

    def __init__(
        self,
        sites: Mapping[str, tuple[Dataset, Server]],
        bare: Server,
        postgres: Postgres,
        *,
        clients: int,
    ) -> None:
        self._servers = {size: server for size, (_, server) in sites.items()}
        self._bare = bare
        self._postgres = postgres
        self._clients = clients
        requests = {size: build_requests(dataset) for size, (dataset, _) in sites.items()}
        names = next(iter(requests.values()))
        self._requests = {(name, size): requests[size][name] for name in names for size in requests}
        self.comparisons = {key: PageComparison() for key in self._requests}
        #: The very first request of each page to a new server.
        self.first_s: dict[tuple[str, str], float] = {}

    def warm_up(self) -> None:
        """Send requests to every thread; these addresses are not requested again soon."""
        for (name, size), requests in self._requests.items():
            server = self._servers[size]
            self.first_s[name, size] = self._cost(server, [next(requests)], Cost())
            self._cost(server, list(islice(requests, 2 * self._clients)), Cost())
        self._cost(self._bare, [BARE] * 4 * self._clients, Cost())

    def round(self, requests: int) -> None:
        for (name, size), page_requests in self._requests.items():
            beside = self.comparisons[name, size]
            self._cost(self._bare, [BARE] * requests, beside.bare)
            self._cost(self._servers[size], list(islice(page_requests, requests)), beside.page)
            few = list(islice(page_requests, -(-requests // ALONE_SHARE)))
            self._cost(self._servers[size], few, beside.alone, clients=1)

    def _cost(
        self, server: Server, requests: Sequence[Request], cost: Cost, clients: int | None = None
    ) -> float:
        """Return the seconds of the slowest request at the client."""
        before = sum_tree_cpu_s(server.pid) + self._postgres.cpu_s()
        times = ask_many(server.port, requests, clients=clients or self._clients)
        cost.served_s += server.served_s(len(times.seconds))
        cost.cpu_s += sum_tree_cpu_s(server.pid) + self._postgres.cpu_s() - before
        cost.seen_s += times.seconds
        cost.wire_bytes = times.wire_bytes
        return max(times.seconds)
