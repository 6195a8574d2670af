"""The pages beside a bare view: what they cost, at every size, in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median, quantiles
from urllib.parse import urlencode

from perf.harness.processes import tree_cpu_s
from perf.scaling.http import Request, ask_many
from perf.scaling.loading import Made
from perf.scaling.servers import Postgres, Server

BARE = Request(path="/")


@dataclass(slots=True, kw_only=True)
class Cost:
    """Of one page: seconds in the server and as the client saw them, request by request."""

    served_s: list[float] = field(default_factory=list)
    seen_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    wire_bytes: int = 0

    @property
    def p95_s(self) -> float:
        return quantiles(self.served_s, n=20)[-1] if len(self.served_s) > 1 else self.served_s[0]

    @property
    def median_s(self) -> float:
        return median(self.served_s)

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / len(self.served_s)


@dataclass(slots=True, kw_only=True)
class Beside:
    """A page and the bare view in the same minutes."""

    page: Cost = field(default_factory=Cost)
    bare: Cost = field(default_factory=Cost)

    @property
    def ratio(self) -> float:
        return self.page.median_s / self.bare.median_s

    @property
    def cpu_ratio(self) -> float:
        return self.page.cpu_ms / self.bare.cpu_ms if self.bare.cpu_ms else 0.0


def pages(made: Made) -> Mapping[str, Request]:
    """What is asked for, signed in as a browser is."""
    headers = {"Cookie": f"sessionid={made.session}", "Accept-Encoding": "gzip"}
    benchmark = f"{made.project}/{made.benchmark}"
    series = {
        "benchmark": benchmark,
        "case": made.case,
        "host": made.host,
        "metric": "requests.rate",
    }
    commits = {
        "benchmark": benchmark,
        "baseline": made.baseline,
        "contender": made.contender,
    }
    paths = {
        "history data": f"/history/{made.series}/data",
        "history page": f"/history/?{urlencode(series)}",
        "comparison": f"/compare/?{urlencode(commits)}",
        "overview": "/",
        "leaderboard": "/reports/leaderboard/",
        "run list": "/runs/",
    }
    return {name: Request(path=path, headers=headers) for name, path in paths.items()}


class Contest:
    """All pages of all sizes, the bare view before each."""

    def __init__(
        self,
        sites: Mapping[str, tuple[Made, Server]],
        bare: Server,
        postgres: Postgres,
        *,
        clients: int,
    ) -> None:
        self._sites = sites
        self._bare = bare
        self._postgres = postgres
        self._clients = clients
        self.found: dict[tuple[str, str], Beside] = {}

    def warm_up(self) -> None:
        """As many requests as there are threads: every process has seen every page."""
        for name, size, request in self._all():
            self._cost(self._sites[size][1], request, 4 * self._clients, Cost())
            self.found[name, size] = Beside()
        self._cost(self._bare, BARE, 4 * self._clients, Cost())

    def round(self, requests: int) -> None:
        for name, size, request in self._all():
            beside = self.found[name, size]
            self._cost(self._bare, BARE, requests, beside.bare)
            self._cost(self._sites[size][1], request, requests, beside.page)

    def _all(self) -> Iterator[tuple[str, str, Request]]:
        for name in pages(next(iter(self._sites.values()))[0]):
            for size, (made, _) in self._sites.items():
                yield name, size, pages(made)[name]

    def _cost(self, server: Server, request: Request, requests: int, cost: Cost) -> None:
        before = tree_cpu_s(server.pid) + self._postgres.cpu_s()
        asked = ask_many(server.port, request, clients=self._clients, requests=requests)
        cost.served_s += server.served_s(len(asked.seconds))
        cost.cpu_s += tree_cpu_s(server.pid) + self._postgres.cpu_s() - before
        cost.seen_s += asked.seconds
        cost.wire_bytes = asked.wire_bytes
